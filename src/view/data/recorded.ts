import type { Outcome } from "../../rollout/outcome.ts"

// What is kept of a run's episodes, as it is read: from the files of a run folder, over HTTP by the page, out of a report. Plain JSON, so
// that the page can hold it; nothing here knows of files or of a browser.

/** The episodes of one task in one iteration. */
export interface RecordedGroup {
  /** From 1, as in the reports. */
  readonly iteration: number
  /** The task's number in its iteration, from 0. */
  readonly group: number
  /** As JSON; what JSON cannot hold is left out. */
  readonly task: unknown
  readonly episodes: readonly RecordedEpisode[]
}

export interface RecordedEpisode {
  /** The episode's number in its group, from 0. */
  readonly member: number
  readonly outcome: Outcome
  /** Undiscounted sum of the rewards. */
  readonly return: number
  /** The last step's; `success` among them, where the environment tells of it. */
  readonly metrics: Readonly<Record<string, number>>
  /** What was observed after the last step. */
  readonly last?: { readonly text: string; readonly anchor: string }
  /** Why it failed. */
  readonly error?: string
  /** How many times it was played before and failed. */
  readonly attempt?: number
  /** Where it branched off another episode of its group: that one's number, and the first step of its own, each from 0. */
  readonly branch?: { readonly of: number; readonly step: number }
  readonly steps: readonly RecordedStep[]
}

/** A reply that was sampled. */
export interface RecordedReply {
  /** The text of each token of the reply, special ones too; joined they are the reply. Characters of several tokens stand with the last. */
  readonly reply: readonly string[]
  /** [tokens] Of each token when it was sampled. */
  readonly logProbs: readonly number[]
  /** [tokens] Of the distribution that it was drawn from, in nats; absent where the engine does not tell. */
  readonly entropies?: readonly number[]
  /** [tokens] 1 for a token that was put there and not sampled; absent where there is none. */
  readonly forced?: readonly number[]
  readonly action: string
  /** Whether it was readable. */
  readonly valid: boolean
  /** What it is worth beside the others, where several were sampled to one prompt. */
  readonly score?: number
}

/** One that was not acted on. */
export interface RecordedCandidate extends RecordedReply {
  readonly score: number
}

export interface RecordedStep extends RecordedReply {
  readonly observation: string
  readonly anchor: string
  /** As the model read it, with its special tokens. */
  readonly prompt: string
  /** How many tokens that is. */
  readonly promptTokens: number
  /** The other replies to its prompt, where several were sampled (`hooks.candidates`). */
  readonly candidates?: readonly RecordedCandidate[]
  /** As the estimator gave it: one for the step, or one a token. Absent where the episode took no part, or the step was skipped. */
  readonly advantage?: number | readonly number[]
  /** Left out of what the policy learned from by the estimator, though its episode took part. */
  readonly skipped?: true
  readonly reward: number
  readonly finishReason: "stop" | "length"
  /** Steps of one number stood in the same state of the same task: the estimator's groups, or those of equal anchors where it has none. */
  readonly stepGroup: number
  /** Discounted, as the estimator compares them; absent where it has none, or none that is finite. */
  readonly discountedReturn?: number
  /** Both levels of the advantage, the second before omega; absent where the estimator has none. */
  readonly episodeAdvantage?: number
  readonly stepAdvantage?: number
  readonly metrics?: Readonly<Record<string, number>>
  readonly conversation?: string | number
  readonly agent?: string | number
}

/** The reply as text, with its special tokens. */
export function replyText({ reply }: Pick<RecordedStep, "reply">): string {
  return reply.join("")
}
