import { GigpoError } from "../util/errors.ts"

/** State of an episode (running, ended or disposed), which decides whether another step is allowed. */
export class Lifecycle {
  readonly #name: string
  readonly #signal: AbortSignal
  #state: "running" | "ended" | "disposed" = "running"

  /** `name` is the environment's, for messages. Throws the signal's reason if it is already aborted. */
  constructor(name: string, signal: AbortSignal) {
    signal.throwIfAborted()
    this.#name = name
    this.#signal = signal
  }

  /** Checks that a step is allowed. Throws the signal's reason, DISPOSED, or BAD_ARGUMENT if the episode has ended. */
  check(): void {
    this.#signal.throwIfAborted()
    if (this.#state === "disposed")
      throw new GigpoError("DISPOSED", `This ${this.#name} episode was disposed; start a new one.`)
    if (this.#state === "ended")
      throw new GigpoError("BAD_ARGUMENT", `This ${this.#name} episode has ended; start a new one.`)
  }

  /** Marks a running episode as ended. A disposed episode stays disposed. */
  end(): void {
    if (this.#state === "running") this.#state = "ended"
  }

  dispose(): void {
    this.#state = "disposed"
  }
}
