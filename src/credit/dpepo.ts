import { only } from "../options/fixed.ts"
import type { OptionsOf } from "../options/table.ts"
import { defineEstimator } from "./define-estimator.ts"
import type { Batch, Estimator, StepCredit } from "./estimator.ts"
import { grpo } from "./grpo.ts"
import { numbersOf, stepNumbers } from "./of-steps.ts"
import { grpoFields, outsideRuns, settle } from "./options.ts"
import { varietyFields, varietyOf } from "./parallel-variety.ts"

/** Options of `dpepo`. */
export const dpepoFields = {
  variety: stepNumbers(
    undefined,
    "Variety of a step's actions in the parallel environments, from 0 to 1: the name of a metric of steps, or in programs a function of " +
      "the batch (`parallelVariety`).",
    "`parallelVariety` of the lines of the action, one per environment in order",
  ),
  ...varietyFields,
  ...grpoFields,
}

/** Options of `dpepo`. */
export type DpepoOptions = OptionsOf<typeof dpepoFields>

/**
 * DPEPO estimator (arXiv 2604.24320): the policy acts in several copies of the environment at once and is encouraged to act differently in
 * them. A = z v where z ≥ 0, else z (2 - v). z is the advantage as in `grpo`, v the variety of the step's actions. Repeated actions lower
 * the advantage of a success and strengthen that of a failure. The details contain `variety`, [steps].
 *
 * @throws BAD_ARGUMENT for an invalid option
 */
export const dpepo = defineEstimator({
  name: "dpepo",
  fields: dpepoFields,
  about: {
    system: "DPEPO",
    origin: "successor",
    changes: ["credit", "rollout", "reward"],
    equation: "A = z v if z ≥ 0, else z (2 - v); z as in GRPO, v = (ω^d + mean_e (α^a + γ^t + β^w) / 3) / 2",
    source: "arXiv 2604.24320, its code",
    set: { "environment.wrapper.name": "parallel" },
    status: "exact",
    note: "The process reward, which only one of their configurations has, is the hook `expert-progress`. Anchor states and prompts of the copies are an interpretation.",
  },
  make(options: DpepoOptions = {}): Estimator<StepCredit> {
    settle("dpepo", options, dpepoFields, outsideRuns)
    const outcome = grpo(only(options, grpoFields))
    return {
      ...outcome,
      name: "dpepo",
      async estimate(batch, context) {
        const settings = settle("dpepo", options, dpepoFields, context.progress)
        const given = settings.variety ?? ((one: Batch) => varietyOf(one, only(settings, varietyFields)))
        const variety = await numbersOf(given, batch, context, "dpepo")
        const credit = await outcome.estimate(batch, context)
        return {
          ...credit,
          advantages: credit.advantages.map((z, row) => {
            const v = Number.isNaN(variety[row]!) ? 1 : variety[row]!
            return z * (z >= 0 ? v : 2 - v)
          }),
          details: { ...credit.details, variety },
        }
      },
    }
  },
})
