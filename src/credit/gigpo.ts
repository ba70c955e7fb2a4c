import { GigpoError } from "../errors.ts"
import { groupByAnchor, groupBySimilarity } from "./anchors.ts"
import { summarizeAdvantages, summarizeLevels, summarizeStepGroups } from "./diagnostics.ts"
import { episodeLevel } from "./grpo.ts"
import { resolveOptions } from "./options.ts"
import { discountedReturns } from "./returns.ts"
import { collectRows, scatter } from "./rows.ts"
import { countGroups, normalizeGroups } from "./statistics.ts"
import type { GigpoOptions, GigpoResult, GigpoStep } from "./types.ts"

/**
 * Group-in-group policy optimization (GiGPO, arXiv 2505.10978): credit for every step of a batch of episodes, from two
 * comparisons. Whole episodes are compared with the others of their task; single steps with the other steps of the task
 * that were taken from the same state. No critic, no extra rollout. Linear in the number of steps.
 *
 * @param steps [steps], in time order within an episode; none give an empty result
 * @throws NON_FINITE for a reward that is not finite, BAD_ARGUMENT for a step or an option that has no meaning
 */
export function gigpoAdvantages(steps: readonly GigpoStep[], options: GigpoOptions = {}): GigpoResult {
  const settings = resolveOptions(options)
  const { gamma, omega, normalization, similarity } = settings
  const rows = collectRows(steps, settings)
  const anchors = rows.steps.map((step, row) => checkedAnchor(step, rows.index[row]!))

  // Eq. 3: A^E(τ_i) = (R(τ_i) - mean_j R(τ_j)) / F_norm({R(τ_j)}), over the episodes τ_j of one task
  const episode = episodeLevel(rows, settings)

  // Eq. 4, 6: G^S(s) = {(a_t^i, R_t^i) | s_t^i = s}, all occurrences of an anchor state s among the steps of one task
  const groups = similarity ? groupBySimilarity(rows.tasks, anchors, similarity) : groupByAnchor(rows.tasks, anchors)

  // Eq. 5: R_t^i = Σ_{k≥t} γ^(k-t) r_k^i
  const returns = discountedReturns(rows.rewards, gamma, rows.episodes)

  // Eq. 7: A^S(a_t^i) = (R_t^i - mean G^S) / F_norm(G^S); 0 for a state that was met once
  const scores = returns.map((value, row) => value - rows.penalties[row]!)
  const step = normalizeGroups(scores, groups, { normalization, singleton: "zero" })

  // Eq. 8: A(a_t^i) = A^E(τ_i) + ω A^S(a_t^i)
  const advantages = episode.advantages.map((value, row) => value + omega * step.advantages[row]!)

  const perStep = (values: Float64Array) => scatter(values, rows.index, new Float64Array(steps.length))
  return {
    advantages: perStep(advantages),
    episodeAdvantages: perStep(episode.advantages),
    stepAdvantages: perStep(step.advantages),
    returns: perStep(returns),
    stepGroups: scatter(groups, rows.index, new Int32Array(steps.length).fill(-1)),
    diagnostics: {
      ...summarizeAdvantages(advantages),
      ...summarizeLevels(episode.advantages, step.advantages, omega),
      ...summarizeStepGroups(groups),
      episodeGroups: countGroups(rows.tasks),
      constantEpisodeGroups: episode.constantGroups,
      constantStepGroups: step.constantGroups,
    },
  }
}

function checkedAnchor(step: GigpoStep, position: number): string {
  if (typeof step.anchor === "string") return step.anchor
  throw new GigpoError(
    "BAD_ARGUMENT",
    `Step ${position} has an anchor of type ${typeof step.anchor}; give the text that identifies the environment's state.`,
  )
}
