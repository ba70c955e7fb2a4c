import { randomUUID } from "node:crypto"
import { clientNumber } from "../http/address.ts"
import { GigpoError } from "../util/errors.ts"
import type { Departures } from "./departures.ts"
import { Results } from "./results.ts"
import type { ServedModel } from "./served-model.ts"
import type { Source } from "./served-samplers.ts"
import { Slots } from "./slots.ts"

/** Maximum number of sampling sessions per session; above it, the least recently used is dropped. Each optimizer step may create one. */
const mostSamplings = 1024
/** Maximum prompt tokens of a session in the engine at once; a shorter prompt counts as `leastRow`. */
const mostRows = 2 ** 22
/** Minimum tokens that a prompt counts, so that there are at most 1,024 prompts at once. */
export const leastRow = 4096

/** Session of a client, with its models, samplers and results, which are freed when the session ends. */
export class Session {
  /** Random id. Ids of the session start with it, so that only the client knows them. */
  readonly id: string = randomUUID()
  /** Address of the client. Sessions of one address divide one share of the engine. */
  readonly address: string
  /** Number of the session, by which the engine divides the share of an address. */
  readonly client: number
  /** Number of the address, by which the engine divides its steps. */
  readonly group: number
  readonly results: Results
  readonly models = new Map<string, ServedModel>()
  readonly rows = new Slots(mostRows)
  /** Slot for scoring prompts: one at a time per session. */
  readonly scoring = new Slots(1)
  /** Time of the last request, on the clock of `performance.now()`. */
  lastContact: number = performance.now()
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

  /** Aborted when the session ends. */
  get signal(): AbortSignal {
    return this.#ended.signal
  }

  /** Whether the session has no models, samplers or requests. */
  get unused(): boolean {
    return this.models.size === 0 && this.#samplings.size === 0 && this.results.size === 0
  }

  /** Opens a sampling session with a number. Returns its id. */
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

  /** Returns the id of the sampling session with a number; undefined where there is none. */
  samplingOf(number: number): string | undefined {
    const id = `${this.id}:sample:${number}`
    return this.#samplings.has(id) ? id : undefined
  }

  /** Returns the weights of a sampling session; undefined for an unknown one. */
  sourceOf(id: string): Source | undefined {
    const source = this.#samplings.get(id)
    if (!source) return undefined
    this.#samplings.delete(id)
    this.#samplings.set(id, source)
    return source
  }

  async end(): Promise<void> {
    const over = new GigpoError("ABORTED", "The session has ended.")
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
