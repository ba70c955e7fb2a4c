export type { GigpoOptions, GrpoOptions, Normalization, SimilarityOptions } from "./options.ts"

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
  /** Share of steps in step groups whose values differ: those that have a step advantage. */
  readonly comparedShare: number
  /** Share of steps in such groups that hold steps of two or more episodes; what differs within one episode is a loop of its own. */
  readonly comparedAcrossShare: number
  /** Share of the episode level in Σ (|A^E| + |ω A^S|). */
  readonly episodeShare: number
  /** Share of the step level in the same sum. */
  readonly stepShare: number
}

/** Result of `grpoAdvantages`. */
export interface GrpoResult {
  /** One number a step, [steps]. */
  readonly advantages: Float64Array
  readonly diagnostics: GrpoDiagnostics
}

/** Arrays are [steps], in the order of the input; padding rows hold 0, and -1 in `stepGroups`. */
export interface GigpoResult extends GrpoResult {
  /** A = A^E + ω A^S (Eq. 8), whitened where that is asked for. */
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
