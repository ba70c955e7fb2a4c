import type { TrainingProgress } from "../options/schedule.ts"
import type { Batch, Credit, Estimator, EstimatorContext } from "./estimator.ts"
import { type OutcomeSettings, outsideRuns } from "./options.ts"
import { paidBatch, payPenalties } from "./penalties.ts"

/**
 * Returns an estimator that receives rewards with the invalid-action penalty included.
 *
 * @param settingsAt returns the options at a point of the run; throws for invalid options
 * @param more further properties of the estimator
 * @param estimate returns the credit from the batch with penalties; its last argument is the batch without penalties
 */
export function paidEstimator<S extends Pick<OutcomeSettings, "invalidActionPenalty">, C extends Credit>(
  name: string,
  settingsAt: (progress: TrainingProgress) => S,
  more: Pick<Estimator, "needs" | "groups">,
  estimate: (batch: Batch, settings: S, context: EstimatorContext, plain: Batch) => C | Promise<C>,
): Estimator<C> {
  settingsAt(outsideRuns)
  return {
    name,
    ...more,
    estimate(plain, context) {
      const settings = settingsAt(context.progress)
      return estimate(paidBatch(plain, payPenalties(plain, settings)), settings, context, plain)
    },
  }
}
