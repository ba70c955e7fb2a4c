import type { FailureReason } from "./failure-reasons.ts"

/** What is known of one iteration; one line of metrics.jsonl. Numbers that do not apply are absent. */
export interface IterationReport {
  readonly iteration: number
  /** When it was reported: ISO 8601, in UTC. */
  readonly time?: string
  /**
   * Names with a slash, e.g. "episode/success", "loss/policy", "time/rollout"; units are seconds, tokens, shares. "episode/success"
   * is the share of all episodes, as in an evaluation: failed and dropped ones count as lost. "time/run" is how long the run has
   * taken, with what it took before it was resumed.
   */
  readonly metrics: Readonly<Record<string, number>>
  /** Why episodes failed; absent where none did. */
  readonly failures?: readonly FailureReason[]
  readonly evaluation?: EvaluationReport
  /** Signs of collapse (`guards`), as they were warned of; absent where there were none. */
  readonly warnings?: readonly string[]
  /** Why the run ended with this iteration, before its last one (`stop`). */
  readonly stopped?: string
}

/** Result of an evaluation on held-out tasks. */
export interface EvaluationReport {
  readonly episodes: number
  readonly failed: number
  /**
   * Share of all episodes with metric `success` = 1, where failed and dropped ones are lost, and its 95 % interval (Wilson). Where no
   * episode tells of success it is 0, and `metrics` has none.
   */
  readonly success: number
  readonly successInterval: readonly [number, number]
  readonly meanReturn: number
  readonly meanSteps: number
  readonly metrics: Readonly<Record<string, number>>
  /** Share of the replies that the environment could read; absent where there was no reply. */
  readonly valid?: number
  /** Share of the replies that were cut at `rollout.maxCompletionTokens`; absent likewise. */
  readonly cut?: number
  /** Why episodes failed; absent where none did. */
  readonly failures?: readonly FailureReason[]
}
