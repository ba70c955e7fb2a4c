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

/** There is no result. The message tells people what is wrong and how to mend it. */
export class RetrieverFailure extends Error {
  override readonly name = "RetrieverFailure"
  /** What the model is told: nothing that differs between servers, so that states that are alike stay so. */
  readonly reason: string

  /** @param reason what the retriever did, a sentence without "the retriever" and full stop; @param detail more, for people alone */
  constructor(reason: string, address: string, detail?: string, cause?: unknown) {
    super(
      `the retriever ${address} ${reason}${detail ? ` (${detail})` : ""}; start the server or correct the option retriever`,
      { cause },
    )
    this.reason = `the retriever ${reason}`
  }
}
