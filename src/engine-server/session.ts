import { randomUUID } from "node:crypto"
import { clientNumber } from "../http/address.ts"
import { GigpoError } from "../util/errors.ts"
import type { Departures } from "./departures.ts"
import { Results } from "./results.ts"
import type { ServedModel } from "./served-model.ts"
import type { Source } from "./served-samplers.ts"
import { Slots } from "./slots.ts"

/** Sampling sessions of one session: above these the one that was not used for longest is dropped. Each optimizer step may make one. */
const mostSamplings = 1024
/** Tokens of prompts that one session has with the engine at once; a short prompt counts as `leastRow`. */
const mostRows = 2 ** 22
/** So there are at most 1,024 rows. */
export const leastRow = 4096

/** A client's time with the server: all that it was given, which ends with it. */
export class Session {
  /** A random id: what begins with it is known to the client alone. */
  readonly id: string = randomUUID()
  /** Address of the client. Sessions of one address share what the engine has for one. */
  readonly address: string
  /** Numbers of the session and of its address for the engine, which shares its steps by them. */
  readonly client: number
  readonly group: number
  readonly results: Results
  readonly models = new Map<string, ServedModel>()
  readonly rows = new Slots(mostRows)
  /** Log-probabilities of prompts: one at a time, of which the engine has one at a time of each address. */
  readonly scoring = new Slots(1)
  /** Moment of the last sign of life, on the clock of `performance.now()`. */
  heard: number = performance.now()
  readonly #samplings = new Map<string, Source>()
  readonly #ended = new AbortController()

  constructor(setup: {
    readonly client: number
    readonly address: string
    readonly departures: Departures
    readonly onError: (error: unknown) => void
    readonly mayHold: (bytes: number) => boolean
  }) {
    const { client, address, departures, onError, mayHold } = setup
    this.client = client
    this.address = address
    this.group = clientNumber(address)
    const report = (error: unknown) => {
      if (!this.signal.aborted) onError(error)
    }
    this.results = new Results({ prefix: this.id, departures, onError: report, mayHold })
  }

  /** Aborted when the session is over. */
  get signal(): AbortSignal {
    return this.#ended.signal
  }

  /** Whether nothing has been asked in it. */
  get unused(): boolean {
    return this.models.size === 0 && this.#samplings.size === 0 && this.results.size === 0
  }

  /** @returns the id of the sampling session with this number */
  sampling(number: number, source: Source): string {
    const id = `${this.id}:sample:${number}`
    this.#samplings.delete(id)
    this.#samplings.set(id, source)
    for (const oldest of this.#samplings.keys()) {
      if (this.#samplings.size <= mostSamplings) break
      this.#samplings.delete(oldest)
    }
    return id
  }

  /** The id of the sampling session with this number, where it was made before. */
  samplingOf(number: number): string | undefined {
    const id = `${this.id}:sample:${number}`
    return this.#samplings.has(id) ? id : undefined
  }

  /** What a sampling session samples. */
  sourceOf(id: string): Source | undefined {
    const source = this.#samplings.get(id)
    if (!source) return undefined
    this.#samplings.delete(id)
    this.#samplings.set(id, source)
    return source
  }

  async end(): Promise<void> {
    const over = new GigpoError("ABORTED", "The session is over.")
    this.results.close()
    this.rows.close(over)
    this.scoring.close(over)
    this.#ended.abort(over)
    this.#samplings.clear()
    const models = [...this.models.values()]
    this.models.clear()
    await Promise.all(models.map(({ policy }) => policy.dispose()))
  }
}
