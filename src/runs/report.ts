import type { FailureReason } from "./failure-reasons.ts"

/** Report of one iteration; one line of metrics.jsonl. Values that do not apply are absent. */
export interface IterationReport {
  /** Number of the iteration, from 1. 0 for an evaluation before the first iteration. */
  readonly iteration: number
  /** Number of the update, from 1, in the log of a supervised fine-tuning, where it replaces the iteration. Absent in training. */
  readonly update?: number
  /** Time of the report: ISO 8601, in UTC. */
  readonly time?: string
  /**
   * Metrics by name, such as "episode/success", "loss/policy" and "time/rollout". Units are seconds, tokens and shares. "episode/success" is
   * the share of all episodes; failed and excluded episodes count as unsuccessful. "time/run" is the duration of the run across resumptions.
   * docs/metrics.md lists all metrics.
   */
  readonly metrics: Readonly<Record<string, number>>
  /** Reasons of failed episodes. Absent if no episode failed. */
  readonly failures?: readonly FailureReason[]
  /** Evaluation after the iteration. Absent if there was none. */
  readonly evaluation?: EvaluationReport
  /** Warnings about collapse (`guards`). Absent if there were none. */
  readonly warnings?: readonly string[]
  /** Reason of early stopping with this iteration (`stop`). */
  readonly stopped?: string
  /** Whether the run was resumed, or forked, before this iteration. Absent otherwise. */
  readonly resumed?: true
}

/** Line of metrics.jsonl after an epoch of supervised fine-tuning, with the number of completed updates. */
export interface UpdateReport extends Omit<IterationReport, "iteration"> {
  readonly update: number
}

/** Report of an evaluation on held-out tasks. */
export interface EvaluationReport {
  /** Number of episodes. */
  readonly episodes: number
  /** Share of episodes that ended with an error or a timeout. */
  readonly failed: number
  /** Share of episodes that the agent excluded, because they cannot be scored. Absent if there was none. */
  readonly excluded?: number
  /**
   * Success rate: share of all episodes with metric `success` = 1. Failed and excluded episodes count as unsuccessful. 0 if no episode has
   * the metric; `metrics.success` is absent then.
   */
  readonly success: number
  /** 95 % Wilson interval of the success rate. */
  readonly successInterval: readonly [number, number]
  /** Mean undiscounted return of the scored episodes. */
  readonly meanReturn: number
  /** Mean number of steps of the scored episodes. */
  readonly meanSteps: number
  /** Means of the metrics that the environment reports. */
  readonly metrics: Readonly<Record<string, number>>
  /** Share of completions with a valid action. Absent if there was no completion. */
  readonly valid?: number
  /** Share of completions that were truncated at `rollout.maxCompletionTokens`. Absent if there was no completion. */
  readonly completionsTruncated?: number
  /** Reasons of failed episodes. Absent if no episode failed. */
  readonly failures?: readonly FailureReason[]
}
