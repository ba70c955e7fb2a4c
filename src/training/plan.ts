import type { EngineRequirements, Trainable } from "../engine/engine.ts"
import { scheduleValue } from "../options/schedule.ts"
import { GigpoError } from "../util/errors.ts"
import { runsItself, statisticsOf } from "./accumulate.ts"
import { type Credited, needsReference } from "./make.ts"
import { adamwAt } from "./schedule.ts"
import type { SettledTrainOptions } from "./settle-rates.ts"

// Requirements that a training run has of its engine, checked before anything is changed.

/** Rejects an estimator or a loss that needs a critic or a reference policy if the engine has none. */
export function checkModels(policy: Trainable, { estimator, loss, needs }: Credited): void {
  if (needs.has("value") && !policy.critic)
    throw bad(
      `The estimator ${estimator.name} needs a critic, which this engine does not support: use an estimator without a critic.`,
    )
  if (needsReference(needs) && !policy.reference)
    throw bad(
      estimator.needs?.includes("reference") || needs.has("hellinger")
        ? `${needs.has("hellinger") ? loss.name : estimator.name} needs a reference policy, which this engine does not support.`
        : "The KL penalty needs a reference policy, which this engine does not support: set loss.klWeight to 0.",
    )
}

/** Requirements of a training run, in the form that engines check. */
export function planOf(
  policy: Trainable,
  options: SettledTrainOptions,
  { loss, needs }: Credited,
  checkpoints: boolean,
): EngineRequirements {
  const start = { iteration: 0, iterations: options.iterations }
  // The kernels of the built-in losses do not support token weights.
  const weighs = options.rolloutCorrection || options.tokenWeights || options.teacherTokenWeights
  const native = weighs ? undefined : runsItself(policy, loss.native?.(start))
  return {
    loss: native ?? "linear",
    entropyCoefficients: !native && needs.has("entropy"),
    statistics: [
      ...new Set([
        ...statisticsOf(loss),
        ...(needs.has("entropy") ? (["entropy"] as const) : []),
        ...(needs.has("squares") ? (["top"] as const) : []),
      ]),
    ],
    models: needsReference(needs) ? ["reference"] : [],
    optimizer: adamwAt(options.optimizer, { index: 0, total: options.iterations, perIteration: 1 }),
    severalSegments: true, // the turns of a conversation become one sequence
    critic: needs.has("value"),
    checkpoints,
    temperature: scheduleValue(options.rollout.temperature, start),
  }
}

/** Rejects a plan that the engine does not support, with all of its reasons. */
export async function checkPlan(policy: Trainable, plan: EngineRequirements): Promise<void> {
  const refusals = await policy.check(plan)
  if (refusals.length > 0) throw bad(`The engine cannot train this. ${refusals.join(" ")}`)
}

function bad(message: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", message)
}
