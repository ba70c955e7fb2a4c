import type { OptionsOf } from "../options/table.ts"
import { groupByAnchor } from "./anchors.ts"
import { defineEstimator } from "./define-estimator.ts"
import type { Batch, Estimator, StepCredit } from "./estimator.ts"
import { normalizers } from "./grpo.ts"
import { normalizerOf } from "./normalizer.ts"
import { grpoFields, settle } from "./options.ts"
import { firstSteps, outcomeEstimator } from "./outcomes.ts"
import { groupStatistics } from "./statistics.ts"

/** Options of `drMas`. */
export const drMasFields = grpoFields

/** Options of `drMas`. */
export type DrMasOptions = OptionsOf<typeof drMasFields>

/**
 * Dr. MAS estimator (arXiv 2602.08847) for episodes with several agents: A = (R(τ) - mean) / F_norm over those episodes of the task in
 * which the agent of the step took a step. An agent that acts rarely therefore has a separate baseline. Equal to `grpo` where no step
 * names an agent.
 *
 * @throws BAD_ARGUMENT for an invalid option
 */
export const drMas = defineEstimator({
  name: "dr-mas",
  fields: drMasFields,
  about: {
    system: "Dr. MAS",
    origin: "relative",
    changes: ["credit", "step-groups"],
    equation: "A = (R - mean R) / (std R + ε) over the episodes with a step of the agent",
    source: "arXiv 2602.08847",
    status: "exact",
  },
  make(options: DrMasOptions = {}): Estimator<StepCredit> {
    return outcomeEstimator(
      "dr-mas",
      (progress) => settle("dr-mas", options, drMasFields, progress),
      ({ batch, scores }, { normalization, epsilon, singletonEpisode: singleton, episodeStatistics }) => {
        const groups = byAgent(batch, batch.task)
        const each = episodeStatistics === "episodes" ? firstSteps(byAgent(batch, batch.episode)) : undefined
        const normalize = normalizerOf({ ...normalizers[normalization], epsilon, singleton })
        return normalize(scores, groups, groupStatistics(scores, groups, each))
      },
    )
  },
})

/** Dense ids of pairs of a given id and the agent, [steps]. */
function byAgent({ agent }: Batch, ids: Int32Array): Int32Array {
  return agent === undefined ? ids : groupByAnchor(ids, agent)
}
