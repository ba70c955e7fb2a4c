import type { OptionsOf } from "../options/table.ts"
import { GigpoError } from "../util/errors.ts"
import { defineEstimator } from "./define-estimator.ts"
import type { Estimator, StepCredit } from "./estimator.ts"
import { outcomeFields, outsideRuns, settle } from "./options.ts"
import { payPenalties } from "./penalties.ts"
import { episodeReturns } from "./returns.ts"

const { invalidActionPenalty, penaltyPlacement } = outcomeFields

/** Options of `remax`. Options of group comparisons do not apply. */
export const remaxFields = { invalidActionPenalty, penaltyPlacement }

/** Options of `remax`. */
export type RemaxOptions = OptionsOf<typeof remaxFields>

/**
 * ReMax estimator (arXiv 2310.10505): A(τ) = R(τ) - R(greedy episode of the task). Steps of tasks whose greedy episode failed are skipped;
 * the metric "greedy/failed" is their share. The details contain `episodeReturns`, [steps].
 *
 * @throws BAD_ARGUMENT for an invalid option
 */
export const remax = defineEstimator({
  name: "remax",
  fields: remaxFields,
  about: {
    system: "ReMax",
    origin: "baseline",
    changes: ["credit", "rollout"],
    equation: "A = R - R of the greedily decoded episode",
    source: "arXiv 2310.10505",
    status: "exact",
    note: "Each task needs one additional, greedy episode.",
  },
  make(options: RemaxOptions = {}): Estimator<StepCredit> {
    settle("remax", options, remaxFields, outsideRuns)
    return {
      name: "remax",
      needs: ["greedy"],
      estimate(batch, { progress }) {
        const { baselines } = batch
        if (baselines === undefined)
          throw new GigpoError(
            "BAD_ARGUMENT",
            "remax needs the return of a greedy episode of each task; give each step its baseline.",
          )
        const { rewards, score } = payPenalties(batch, settle("remax", options, remaxFields, progress))
        const returns = episodeReturns(rewards, batch.episode)
        const skip = Uint8Array.from(baselines, (baseline) => (Number.isNaN(baseline) ? 1 : 0))
        const failed = skip.reduce((sum, one) => sum + one, 0)
        return {
          advantages: score(returns).map((value, row) => (skip[row] === 1 ? 0 : value - baselines[row]!)),
          ...(failed > 0 && { skip }),
          metrics: { "greedy/failed": failed / Math.max(batch.length, 1) },
          details: { episodeReturns: returns },
        }
      },
    }
  },
})
