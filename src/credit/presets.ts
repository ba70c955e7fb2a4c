import type { GigpoOptions } from "./types.ts"

/**
 * Named options of `gigpo` and `gigpoAdvantages`, to spread and override: `{ ...gigpoPresets.verlAgent, normalization: "none" }`. Options that depend on
 * the environment are not included (similarity, and except for the paper, ROLL and Trinity F_norm).
 */
export const gigpoPresets: {
  /** Options of the paper (arXiv 2505.10978, Eq. 3 to 8), equal to the defaults. */
  readonly paper: GigpoOptions
  /**
   * Options of verl-agent (langfengQ/verl-agent), the code of the authors, which differ from the paper: long episodes have more weight, a return
   * without others to compare with is used unchanged, and the invalid-action penalty (0.1; 0.01 in the search example) applies to the invalid step
   * only. `normalization` and `similarity` depend on the environment: "sample" and no similarity for ALFWorld, "sample" and 0.9 for search, "none"
   * for WebShop, Sokoban and cards. Float32 rounding errors and copies that fill batches are not reproduced.
   */
  readonly verlAgent: GigpoOptions
  /**
   * Options of ROLL (alibaba/ROLL, agentic pipeline with the settings of the GiGPO example): long episodes have more weight, equal states of
   * different tasks are one step group, and advantages are whitened. The optional clipping of advantages is left out.
   */
  readonly roll: GigpoOptions
  /**
   * Options of Trinity-RFT: no discount, a return without others to compare with is used unchanged, and equal states are one step group over the
   * whole batch. The constant 1e-6 added to F_norm = 1 is left out.
   */
  readonly trinity: GigpoOptions
} = {
  paper: {
    gamma: 0.95,
    omega: 1,
    stepScope: "task",
    whiten: false,
    normalization: "sample",
    epsilon: 1e-6,
    episodeStatistics: "episodes",
    singletonEpisode: "zero",
    invalidActionPenalty: 0,
    penaltyPlacement: "reward",
  },
  verlAgent: {
    gamma: 0.95,
    omega: 1,
    episodeStatistics: "steps",
    singletonEpisode: "raw",
    invalidActionPenalty: 0.1,
    penaltyPlacement: "step",
  },
  roll: {
    gamma: 0.95,
    omega: 1,
    stepScope: "batch",
    whiten: true,
    normalization: "none",
    episodeStatistics: "steps",
    singletonEpisode: "zero",
  },
  trinity: {
    gamma: 1,
    omega: 1,
    stepScope: "batch",
    normalization: "none",
    episodeStatistics: "episodes",
    singletonEpisode: "raw",
  },
}
