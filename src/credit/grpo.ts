import { without } from "../options/fixed.ts"
import { collect, scatter } from "./batch.ts"
import { defineEstimator } from "./define-estimator.ts"
import { summarizeAdvantages } from "./diagnostics.ts"
import type { Batch, Estimator, StepCredit } from "./estimator.ts"
import { normalizerOf } from "./normalizer.ts"
import { type EpisodeSettings, gigpoFields, grpoFields, outsideRuns, settle } from "./options.ts"
import { countTasks, type Outcomes, outcomeEstimator, outcomesOf } from "./outcomes.ts"
import type { Paid } from "./penalties.ts"
import type { GrpoOptions, GrpoResult, GrpoStep, Normalization } from "./types.ts"

/**
 * GRPO on episodes: every step of an episode gets A^E of Eq. 3, the episode's return compared with those of the same task. Its
 * details hold `episodeReturns`, [steps].
 *
 * @throws BAD_ARGUMENT for an invalid option
 */
export const grpo = defineEstimator({
  name: "grpo",
  fields: grpoFields,
  about: {
    system: "GRPO",
    origin: "baseline",
    changes: ["credit"],
    equation: "A = (R - mean R) / (std R + ε)",
    source: "arXiv 2402.03300",
    standing: "exact",
  },
  make(options: GrpoOptions = {}): Estimator<StepCredit> {
    return outcomeEstimator("grpo", (moment) => settle("grpo", options, gigpoFields, moment), normalized)
  },
})

/** REINFORCE leave-one-out: the episode's return against the mean of the others. `grpo` under `normalization: "leaveOneOut"`. */
export const rloo = defineEstimator({
  name: "rloo",
  fields: { ...without(grpoFields, "normalization", "epsilon") },
  about: {
    file: "src/credit/grpo.ts",
    system: "RLOO",
    origin: "baseline",
    changes: ["credit"],
    equation: "A = n / (n - 1) (R - mean R)",
    source: "arXiv 2402.14740",
    standing: "exact",
  },
  make(options: Omit<GrpoOptions, "normalization"> = {}): Estimator<StepCredit> {
    return outcomeEstimator(
      "rloo",
      (moment) => ({ ...settle("rloo", options, rlooFields, moment), normalization: "leaveOneOut" as const }),
      normalized,
    )
  },
})

// GiGPO's keys may be there, as in its presets: their values are checked and left aside.
const rlooFields = without(gigpoFields, "normalization")

/**
 * The same credit as a pure function of plain steps, with diagnostics. A number that is a schedule counts as it begins.
 *
 * @param steps [steps]; none give an empty result
 * @throws NON_FINITE for a reward that is not finite, BAD_ARGUMENT for a step or an option that has no meaning
 */
export function grpoAdvantages(steps: readonly GrpoStep[], options: GrpoOptions = {}): GrpoResult {
  const settings = settle("grpo", options, gigpoFields, outsideRuns)
  const { batch, index } = collect(steps)
  const { advantages, episodeGroups, constantEpisodeGroups } = episodeLevel(batch, settings)
  return {
    advantages: scatter(advantages, index, new Float64Array(steps.length)),
    diagnostics: { ...summarizeAdvantages(advantages), episodeGroups, constantEpisodeGroups },
  }
}

/** Eq. 3 for every step: A^E(τ_i) = (R(τ_i) - mean_j R(τ_j)) / F_norm({R(τ_j)}), over the episodes τ_j of one task. */
export function episodeLevel(batch: Batch, settings: EpisodeSettings, paid?: Paid) {
  const outcomes = outcomesOf(batch, settings, paid)
  return { advantages: normalized(outcomes, settings), ...countTasks(outcomes) }
}

function normalized({ batch, scores, statistics }: Outcomes, settings: EpisodeSettings): Float64Array {
  const { normalization, epsilon, singletonEpisode: singleton } = settings
  return normalizerOf({ ...normalizers[normalization], epsilon, singleton })(scores, batch.task, statistics)
}

/** F_norm by the names that options give it. */
export const normalizers = {
  sample: { std: "sample" },
  population: { std: "population" },
  none: { std: "none" },
  leaveOneOut: { std: "none", leaveOneOut: true },
} as const satisfies Record<Normalization, object>
