import { number, oneOf, scheduled } from "../options/field.ts"
import type { OptionsOf } from "../options/table.ts"
import { defineEstimator } from "./define-estimator.ts"
import type { Estimator, StepCredit } from "./estimator.ts"
import { outcomeFields, settle } from "./options.ts"
import { centred, firstSteps, type Outcomes, outcomeEstimator } from "./outcomes.ts"
import { groupStatistics } from "./statistics.ts"

/** Options of `opmd`. The baseline is over episodes, each once, so `episodeStatistics` does not apply. */
export const opmdFields = {
  baseline: oneOf(
    "mean",
    ["mean", "log-mean-exp"],
    "Baseline of the returns of a task: their mean, or τ log mean e^(R / τ), the value of the optimal regularized policy.",
  ),
  tau: scheduled(
    number(1, "Temperature τ of the baseline log-mean-exp, above 0, in units of the return.", { above: 0 }),
  ),
  singletonEpisode: outcomeFields.singletonEpisode,
  invalidActionPenalty: outcomeFields.invalidActionPenalty,
}

/** Options of `opmd`. */
export type OpmdOptions = OptionsOf<typeof opmdFields>

/**
 * Advantages of OPMD, online policy mirror descent as Trinity-RFT has it: A(τ) = R(τ) - b, with b the mean return of the task's episodes or
 * τ log mean e^(R / τ). The loss `opmd` belongs to it. Penalties for invalid actions are placed in the reward.
 *
 * @throws BAD_ARGUMENT for an invalid option
 */
export const opmd = defineEstimator({
  name: "opmd",
  fields: opmdFields,
  about: {
    system: "OPMD",
    origin: "baseline",
    changes: ["credit", "loss"],
    equation: "A = R - mean R, or R - τ log mean e^(R / τ); loss -A log p / (1 + τ)",
    source: "Trinity-RFT",
    set: { "training.loss.name": "opmd" },
    status: "exact",
  },
  make(options: OpmdOptions = {}): Estimator<StepCredit> {
    const fixed = { episodeStatistics: "episodes", penaltyPlacement: "reward" } as const
    return outcomeEstimator(
      "opmd",
      (progress) => ({ ...settle("opmd", options, opmdFields, progress), ...fixed }),
      (outcomes, settings) => {
        const { statistics } = outcomes
        const mean = settings.baseline === "mean" ? statistics.mean : softMeans(outcomes, settings.tau)
        return centred({ ...outcomes, statistics: { ...statistics, mean } }, settings)
      },
    )
  },
})

/** τ log mean e^(R / τ) of the episodes of each task, [tasks], relative to the largest return, so that e^x cannot overflow. */
function softMeans({ batch, scores }: Outcomes, tau: number): Float64Array {
  const { task, episode } = batch
  const largest: number[] = []
  for (const [row, score] of scores.entries()) largest[task[row]!] = Math.max(largest[task[row]!] ?? -Infinity, score)
  const shares = scores.map((score, row) => Math.exp((score - largest[task[row]!]!) / tau))
  const { mean } = groupStatistics(shares, task, firstSteps(episode))
  return mean.map((share, at) => largest[at]! + tau * Math.log(share))
}
