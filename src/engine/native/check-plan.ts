import type { ModelConfig } from "../../model-files/model-config.ts"
import { GigpoError } from "../../util/errors.ts"
import { checkSurrogate } from "../check-arguments.ts"
import { completeStep } from "../complete-step.ts"
import type { RunPlan, Statistic } from "../engine.ts"
import { nativeLosses } from "./losses.ts"
import { chooseDevice, deviceMemory, memoryPlan, type NativePolicyOptions } from "./options.ts"

/** What the engine tells of distributions. */
export const nativeStatistics: readonly Statistic[] = ["entropy", "hellinger", "top"]

export function unknownStatistic(statistic: string): string {
  const known = nativeStatistics.map((name) => `"${name}"`).join(", ")
  return `This engine does not know the statistic "${statistic}"; it has ${known}.`
}

/**
 * What a policy of this model and these options cannot do of a run's plan.
 *
 * @param availableBytes - what there was for it when it was opened. Default: what there is.
 */
export function refusals(
  plan: RunPlan,
  config: ModelConfig,
  options: NativePolicyOptions,
  availableBytes = deviceMemory(options),
): string[] {
  const sentences: string[] = []
  const fits = (what: "reference" | "critic") => fitsBeside(what, config, options, availableBytes)
  if (options.training === false)
    sentences.push("This policy was opened with training: false; open it without that option to train it.")
  if (plan.loss !== "linear" && !nativeLosses.includes(plan.loss.kind))
    sentences.push(`This engine does not know the loss "${plan.loss.kind}": have it evaluated, as "linear".`)
  for (const statistic of plan.statistics) {
    if (!nativeStatistics.includes(statistic))
      sentences.push(`${unknownStatistic(statistic)} Take a loss that needs no other.`)
  }
  for (const model of plan.models) {
    if (model !== "reference")
      sentences.push(`This engine has no model "${model}"; the only one beside the policy is "reference".`)
  }
  const compares = plan.models.includes("reference") || plan.statistics.includes("hellinger")
  if (compares && !fits("reference"))
    sentences.push("This policy was opened without memory for a reference policy; open it with reference: true.")
  if (plan.critic && !fits("critic"))
    sentences.push("This policy was opened without memory for a critic; open it with critic: true.")
  try {
    if (typeof plan.loss === "object" && plan.loss.kind === "clipped-surrogate") checkSurrogate(plan.loss)
    completeStep(plan.optimizer)
  } catch (error) {
    if (!GigpoError.is(error)) throw error
    sentences.push(error.message)
  }
  return sentences
}

/** On a GPU what is not planned is given to the cache; on the CPU it is taken at need. */
function fitsBeside(
  what: "reference" | "critic",
  config: ModelConfig,
  options: NativePolicyOptions,
  availableBytes: number | undefined,
): boolean {
  if (options[what]) return true
  if (chooseDevice(options) === "cuda") return false
  try {
    memoryPlan(config, { ...options, [what]: true }, availableBytes)
    return true
  } catch (error) {
    if (GigpoError.is(error) && error.code === "OUT_OF_MEMORY") return false
    throw error
  }
}
