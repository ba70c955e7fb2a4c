export type { GigpoOptions, GrpoOptions, Normalization, SimilarityOptions } from "./options.ts"

/** Step of an episode, as input of `grpoAdvantages`. Steps of an episode are in order of time; episodes may interleave. */
export interface GrpoStep {
  /** Id of the task. Only episodes of the same task are compared. 1 and "1" are different tasks. */
  readonly task: string | number
  /** Id of the episode, unique within the task. */
  readonly episode: string | number
  /** Reward of this step. Finite, at most 1e100 in magnitude. */
  readonly reward: number
  /** Whether the completion could be parsed into an action. Otherwise `invalidActionPenalty` applies. Default true. */
  readonly valid?: boolean
  /** Whether the step only fills a batch: left out of statistics and checks, with advantage 0. Default false. */
  readonly padding?: boolean
}

/** Step of an episode with its anchor state, as input of `gigpoAdvantages`. */
export interface GigpoStep extends GrpoStep {
  /** Anchor state before the action. Steps of one task with equal anchor states form a step group. */
  readonly anchor: string
}

/** Diagnostics of `grpoAdvantages`, over all steps except padding. */
export interface GrpoDiagnostics {
  /** Mean of the advantages over steps. */
  readonly advantageMean: number
  /** Sample standard deviation; 0 for a single step. */
  readonly advantageStd: number
  /** Number of tasks. */
  readonly episodeGroups: number
  /** Number of tasks with at least two values in their statistics that are all equal. Their episode advantages are 0. */
  readonly constantEpisodeGroups: number
}

/** Diagnostics of `gigpoAdvantages`, over all steps except padding. Shares are in [0, 1], and 0 if there is nothing to count. */
export interface GigpoDiagnostics extends GrpoDiagnostics {
  /** Number of step groups. */
  readonly stepGroups: number
  /** Number of step groups by size. */
  readonly stepGroupSizes: Readonly<Record<number, number>>
  /** Mean number of steps of a step group. */
  readonly meanStepGroupSize: number
  /** Share of steps in singletons, which have no step advantage. */
  readonly singletonShare: number
  /** Number of step groups with at least two steps whose returns are all equal. */
  readonly constantStepGroups: number
  /** Share of steps in step groups with different values. These steps have a step advantage. */
  readonly nonzeroShare: number
  /** Share of all steps that are compared with a step of another episode. `nonzeroShare` minus this are loops within one episode. */
  readonly nonzeroAcrossShare: number
  /** Share of the episode level in Σ (|A^E| + |ω A^S|). */
  readonly episodeShare: number
  /** Share of the step level in Σ (|A^E| + |ω A^S|). */
  readonly stepShare: number
}

/** Result of `grpoAdvantages`. */
export interface GrpoResult {
  /** Advantages, [steps]. */
  readonly advantages: Float64Array
  /** Numbers that describe the groups and the advantages. */
  readonly diagnostics: GrpoDiagnostics
}

/** Result of `gigpoAdvantages`; equations of arXiv 2505.10978. Arrays are [steps], in the order of the input. Padding has 0, and -1 in `stepGroups`. */
export interface GigpoResult extends GrpoResult {
  /** Advantages A = A^E + ω A^S (Eq. 8 of GiGPO), whitened with the option `whiten`. */
  readonly advantages: Float64Array
  /** Episode advantages A^E (Eq. 3 of GiGPO). */
  readonly episodeAdvantages: Float64Array
  /** Step advantages A^S (Eq. 7 of GiGPO), before ω. */
  readonly stepAdvantages: Float64Array
  /** Discounted returns (Eq. 5 of GiGPO). */
  readonly returns: Float64Array
  /** Step group of each step (Eq. 4 and 6 of GiGPO): dense, in order of first occurrence. */
  readonly stepGroups: Int32Array
  /** Numbers that describe both kinds of groups and the advantages. */
  readonly diagnostics: GigpoDiagnostics
}
