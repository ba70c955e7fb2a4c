import type { TrainingProgress } from "../options/schedule.ts"
import type { Batch, Credit, Estimator, EstimatorContext } from "./estimator.ts"
import { type OutcomeSettings, outsideRuns } from "./options.ts"
import { paidBatch, payPenalties } from "./penalties.ts"

/**
 * An estimator of rewards that hold the penalty of invalid actions.
 *
 * @param settingsAt its options at a moment; refuses what has no meaning
 * @param more what else is to be known of it
 * @param estimate its credit, from the batch with what was paid; the last is the batch without
 */
export function paidEstimator<S extends Pick<OutcomeSettings, "invalidActionPenalty">, C extends Credit>(
  name: string,
  settingsAt: (moment: TrainingProgress) => S,
  more: Pick<Estimator, "needs" | "groups">,
  estimate: (batch: Batch, settings: S, context: EstimatorContext, plain: Batch) => C | Promise<C>,
): Estimator<C> {
  settingsAt(outsideRuns)
  return {
    name,
    ...more,
    estimate(plain, context) {
      const settings = settingsAt(context.moment)
      return estimate(paidBatch(plain, payPenalties(plain, settings)), settings, context, plain)
    },
  }
}
