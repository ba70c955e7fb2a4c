import type { GigpoOptions } from "./types.ts"

/**
 * Named options of `gigpo` and `gigpoAdvantages`, to spread and override: `{ ...presets.verlAgent, normalization: "none" }`. What an
 * environment decides (similarity, and but for the paper's and ROLL's example F_norm) is left to it.
 */
export const presets: {
  /** arXiv 2505.10978, Eq. 3 to 8: the defaults, spelled out. */
  readonly paper: GigpoOptions
  /**
   * What the reference code (langfengQ/verl-agent) computes, where it departs from the paper: long episodes weigh more, a
   * lone value keeps its raw return, and an invalid action's penalty (0.1; the code's search example has 0.01) stays on
   * its own row. `normalization` and `similarity` belong to the environment there too: std and no similarity for ALFWorld,
   * std and 0.9 for search, "none" for WebShop, Sokoban and cards. Its float32 faults and batch-filling copies are not
   * reproduced.
   */
  readonly verlAgent: GigpoOptions
  /**
   * ROLL (alibaba/ROLL, its agentic pipeline with the GiGPO example's settings): long episodes weigh more, equal states of different
   * tasks are one step group, and advantages are whitened. Its clip of advantages, a matter of taste there, is left out.
   */
  readonly roll: GigpoOptions
  /**
   * Trinity-RFT: no discount, a lone episode keeps its raw return, and equal states are one step group over the whole batch. Its 1e-6
   * beside F_norm = 1 is left out.
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
    penaltyPlacement: "row",
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
