import type { ApiError } from "../chat/api-error.ts"
import type { CallObserver } from "../endpoint/endpoint.ts"
import { ended } from "../options/display.ts"
import { GigpoError } from "../util/errors.ts"
import { type OnWarning, warner } from "../util/warn.ts"

/** Maximum number of distinct rejections that are reported. */
const most = 20

/** Rejected calls in the episodes of an agent. Reports each distinct rejection once; `episode/rejected-calls` counts them. */
export class Refusals {
  /** Seconds that an agent whose every call was rejected may neither send another call nor end. */
  readonly patience: number
  readonly #warn: OnWarning
  readonly #known = new Set<string>()
  #answered = false
  #inVain = false

  constructor(onWarning: OnWarning | undefined, patience = 30) {
    this.#warn = warner(onWarning)
    this.patience = patience
  }

  /** Whether a wait was in vain before, and no call of any episode was answered. */
  get isHopeless(): boolean {
    return this.#inVain && !this.#answered
  }

  answered(): void {
    this.#answered = true
  }

  waitedInVain(): void {
    this.#inVain = true
  }

  add(refusal: ApiError): void {
    const text = describe(refusal)
    const kind = text.replaceAll(/\d+/g, "0") // those that differ only in numbers are one
    if (this.#known.has(kind) || this.#known.size >= most) return
    this.#known.add(kind)
    this.#warn(
      `A call of the agent was rejected: ${text} Such a rejection is reported once; episode/rejected-calls counts them.`,
    )
  }
}

/**
 * Calls of one episode. An agent whose client swallows every rejection would wait for ever: `silence` then rejects, so that
 * the episode fails for that reason.
 */
export class EpisodeCalls implements CallObserver, Disposable {
  /** Number of rejected calls. */
  rejected = 0
  /** Rejects with the last rejection once the agent, whose every call was rejected, does nothing any more. */
  readonly silence: Promise<never>
  readonly #refusals: Refusals
  #fail!: (error: GigpoError) => void
  #last: ApiError | undefined
  #open = 0
  #answered = false
  #timer: NodeJS.Timeout | undefined

  constructor(refusals: Refusals) {
    this.#refusals = refusals
    this.silence = new Promise((_, reject) => {
      this.#fail = reject
    })
    this.silence.catch(() => {}) // it may reject when the episode has ended
  }

  begin(): void {
    this.#open++
    clearTimeout(this.#timer)
  }

  end(error?: ApiError): void {
    this.#open--
    if (!error) {
      this.#answered = true
      this.#refusals.answered()
    } else if (error.status < 500 && error.status !== 499) this.#refuse(error)
  }

  /** The last rejection, if every call was rejected. */
  get refusal(): string | undefined {
    return this.#answered || !this.#last ? undefined : describe(this.#last)
  }

  #refuse(refusal: ApiError): void {
    this.rejected++
    this.#last = refusal
    this.#refusals.add(refusal)
    if (this.#answered || this.#open > 0) return
    const { patience, isHopeless } = this.#refusals
    this.#timer = setTimeout(
      () => {
        this.#refusals.waitedInVain()
        this.#fail(allRefused(refusal, this.rejected))
      },
      isHopeless ? 0 : 1000 * patience,
    )
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
  }
}

function allRefused(refusal: ApiError, count: number): GigpoError {
  return new GigpoError(
    "BAD_ENVIRONMENT",
    `The gateway rejected every call of the agent (${count}), and the agent neither ended nor sent another: ${describe(refusal)}`,
    { cause: refusal },
  )
}

function describe({ status, message }: ApiError): string {
  return `${status} ${ended(message.slice(0, 500))}`
}
