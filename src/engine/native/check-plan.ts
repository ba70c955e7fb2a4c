import type { ModelConfig } from "../../model-files/model-config.ts"
import { GigpoError } from "../../util/errors.ts"
import { checkSurrogate } from "../check-arguments.ts"
import { completeStep } from "../complete-step.ts"
import type { EngineRequirements, TokenStatisticName } from "../engine.ts"
import { nativeLosses } from "./losses.ts"
import { chooseDevice, deviceMemory, memoryPlan, type NativePolicyOptions } from "./options.ts"

/** Statistics that the engine computes. */
export const nativeStatistics: readonly TokenStatisticName[] = ["entropy", "hellinger", "top"]

/** Returns the message for an unsupported statistic. */
export function unknownStatistic(statistic: string): string {
  const known = nativeStatistics.map((name) => `"${name}"`).join(", ")
  return `The native engine does not support the statistic "${statistic}"; it supports ${known}.`
}

/**
 * Returns the parts of a run's plan that a policy does not support, as sentences.
 *
 * @param availableBytes - memory that was available when the policy was opened. Default: the memory available now.
 */
export function refusals(
  plan: EngineRequirements,
  config: ModelConfig,
  options: NativePolicyOptions,
  availableBytes = deviceMemory(options),
): string[] {
  const sentences: string[] = []
  const fits = (what: "reference" | "critic") => fitsBeside(what, config, options, availableBytes)
  if (options.training === false)
    sentences.push("This policy was opened with training: false; open it without that option to train it.")
  if (plan.loss !== "linear" && !nativeLosses.includes(plan.loss.kind))
    sentences.push(
      `The native engine does not support the loss "${plan.loss.kind}": use "linear", for which the trainer evaluates the loss.`,
    )
  for (const statistic of plan.statistics) {
    if (!nativeStatistics.includes(statistic))
      sentences.push(`${unknownStatistic(statistic)} Choose another loss or estimator.`)
  }
  for (const model of plan.models) {
    if (model !== "reference")
      sentences.push(`The native engine has no model "${model}"; besides the policy there is only "reference".`)
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

/** Whether a second model fits. On a GPU, memory that was not planned for it belongs to the KV cache; on the CPU it is allocated when needed. */
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
