/** One step of an episode, as the episode level sees it. Steps of one episode stand in time order; episodes may interleave. */
export interface GrpoStep {
  /** What the group attempts. Only episodes of one task are compared. 1 and "1" are different tasks. */
  readonly task: string | number
  /** Which run of the task; unique within the task. */
  readonly episode: string | number
  /** Reward of this step alone. Finite, at most 1e100 in size. */
  readonly reward: number
  /** Whether the reply was readable; invalid steps pay `invalidActionPenalty`. Default true. */
  readonly valid?: boolean
  /** A row that only fills a batch: in no statistic, never checked, advantage 0. Default false. */
  readonly padding?: boolean
}

/** One step, with what identifies the environment's state before its action. */
export interface GigpoStep extends GrpoStep {
  /** Steps of one task with equal anchors form a step group. */
  readonly anchor: string
}

/**
 * F_norm, what a value's distance from its group's mean is divided by.
 * - `std`: the sample standard deviation (n - 1), plus 1e-6.
 * - `none`: 1.
 * - `leaveOneOut`: (n - 1) / n, which is the distance from the mean of the others (RLOO).
 */
export type Normalization = "std" | "none" | "leaveOneOut"

/** Options of the episode level. The defaults are the paper's (arXiv 2505.10978). */
export interface GrpoOptions {
  /** Default "std". */
  readonly normalization?: Normalization
  /**
   * What the mean and deviation of Eq. 3 run over: the episodes of the task, each once (the paper), or all their steps,
   * so that long episodes weigh more (the reference code). Default "episodes".
   */
  readonly episodeStatistics?: "episodes" | "steps"
  /** Advantage of a value that is alone in its episode statistic: 0, or the return itself (the reference code). Default "zero". */
  readonly singletonEpisode?: "zero" | "raw"
  /** Taken off for every invalid step, at least 0, in units of reward. Default 0. */
  readonly invalidActionPenalty?: number
  /**
   * Where the penalty goes: into the step's reward, and so into its episode's return and all earlier discounted returns
   * (the paper), or only into the scores of the invalid row itself (the reference code). Default "reward".
   */
  readonly penaltyPlacement?: "reward" | "row"
}

/** Options of both levels. The defaults are the paper's. */
export interface GigpoOptions extends GrpoOptions {
  /** Discount of the step returns, in (0, 1]. Default 0.95. */
  readonly gamma?: number
  /** Weight of the step advantage, at least 0. Default 1. */
  readonly omega?: number
  /** Put steps with similar anchors into one step group: the least ratio, in (0, 1], or more. Default: equal anchors only. */
  readonly similarity?: number | SimilarityOptions
}

/** See `groupBySimilarity`. */
export interface SimilarityOptions {
  /** Least `similarityRatio` of a group's members to its first member, in (0, 1]. */
  readonly threshold: number
  /** Ignore over-frequent characters of long texts as starting points, as CPython does. Default true. */
  readonly autojunk?: boolean
}

/** Numbers to log, over all steps but padding. */
export interface GrpoDiagnostics {
  readonly advantageMean: number
  /** Sample standard deviation; 0 for a single step. */
  readonly advantageStd: number
  /** Number of tasks. */
  readonly episodeGroups: number
  /** Tasks with two or more values in their episode statistic, all equal: they teach nothing at the episode level. */
  readonly constantEpisodeGroups: number
}

/** Numbers to log, over all steps but padding. Shares lie in [0, 1] and are 0 where there is nothing to share. */
export interface GigpoDiagnostics extends GrpoDiagnostics {
  /** Number of step groups. */
  readonly stepGroups: number
  /** Size of step group -> number of groups of that size. */
  readonly stepGroupSizes: Readonly<Record<number, number>>
  readonly meanStepGroupSize: number
  /** Share of steps that are alone in their step group, and so have no step advantage. */
  readonly singletonShare: number
  /** Step groups of two or more steps whose returns are all equal. */
  readonly constantStepGroups: number
  /** Share of the episode level in Σ (|A^E| + |ω A^S|). */
  readonly episodeShare: number
  /** Share of the step level in the same sum. */
  readonly stepShare: number
}

export interface GrpoResult {
  /** One number a step, [steps]. */
  readonly advantages: Float64Array
  readonly diagnostics: GrpoDiagnostics
}

/** Arrays are [steps], in the order of the input; padding rows hold 0, and -1 in `stepGroups`. */
export interface GigpoResult extends GrpoResult {
  /** A = A^E + ω A^S (Eq. 8). */
  readonly advantages: Float64Array
  /** A^E (Eq. 3). */
  readonly episodeAdvantages: Float64Array
  /** A^S (Eq. 7), before ω. */
  readonly stepAdvantages: Float64Array
  /** Discounted returns (Eq. 5). */
  readonly returns: Float64Array
  /** Step group of each step (Eq. 4, 6): dense, in order of first occurrence. */
  readonly stepGroups: Int32Array
  readonly diagnostics: GigpoDiagnostics
}
