import { GigpoError } from "../util/errors.ts"

/** Whether an episode may be stepped: it runs until it ends, and is over for good once it is disposed. */
export class Lifecycle {
  readonly #name: string
  readonly #signal: AbortSignal
  #state: "running" | "ended" | "disposed" = "running"

  /** Throws the signal's reason where it is aborted already. `name` is the environment's, for messages. */
  constructor(name: string, signal: AbortSignal) {
    signal.throwIfAborted()
    this.#name = name
    this.#signal = signal
  }

  /** For the beginning of a step. Throws the signal's reason, DISPOSED, or BAD_ARGUMENT where the episode is over. */
  check(): void {
    this.#signal.throwIfAborted()
    if (this.#state === "disposed")
      throw new GigpoError("DISPOSED", `This ${this.#name} episode was disposed; start a new one.`)
    if (this.#state === "ended")
      throw new GigpoError("BAD_ARGUMENT", `This ${this.#name} episode is over; start a new one.`)
  }

  /** No step may follow. An episode that was disposed meanwhile stays so. */
  end(): void {
    if (this.#state === "running") this.#state = "ended"
  }

  dispose(): void {
    this.#state = "disposed"
  }
}
