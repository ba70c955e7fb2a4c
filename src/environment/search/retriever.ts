/** A text that was found. */
export interface Passage {
  readonly id: string
  /** The whole text. By custom the first line is the title in double quotes. */
  readonly contents: string
  readonly score: number
}

/** Finds passages: an index in this process, or a server. */
export interface Retriever {
  /**
   * The best `limit` passages, best first. Rejects with `RetrieverFailure` where an answer cannot be had, and with the signal's
   * reason once it is aborted.
   */
  retrieve(query: string, limit: number, signal: AbortSignal): Promise<readonly Passage[]>
}

/** Why there is no result: a sentence without the full stop. */
export class RetrieverFailure extends Error {
  override readonly name = "RetrieverFailure"
}
