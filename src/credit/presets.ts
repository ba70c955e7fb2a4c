import type { GigpoOptions } from "./types.ts"

/** Named options of `gigpoAdvantages`, to spread and override: `{ ...presets.verlAgent, normalization: "none" }`. */
export const presets: {
  /**
   * What the reference code (langfengQ/verl-agent) computes, where it departs from the paper: long episodes weigh more, a
   * lone value keeps its raw return, and an invalid action's penalty (0.1; the code's search example has 0.01) stays on
   * its own row. `normalization` and `similarity` belong to the environment there too: std and no similarity for ALFWorld,
   * std and 0.9 for search, "none" for WebShop, Sokoban and cards. Its float32 faults and batch-filling copies are not
   * reproduced.
   */
  readonly verlAgent: GigpoOptions
} = {
  verlAgent: {
    gamma: 0.95,
    omega: 1,
    episodeStatistics: "steps",
    singletonEpisode: "raw",
    invalidActionPenalty: 0.1,
    penaltyPlacement: "row",
  },
}
