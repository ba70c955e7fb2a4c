import { randomUUID } from "node:crypto"
import { ApiError } from "../chat/api-error.ts"
import type { Departures } from "./departures.ts"
import type { ServedModel } from "./served-model.ts"
import type { Source } from "./served-samplers.ts"
import { Session } from "./session.ts"

/** Maximum number of sessions: in total, and per client address. */
const mostSessions = 128
const mostOfAddress = 64
/**
 * Maximum bytes of unfinished requests and unfetched results of all sessions. Addresses have equal shares, and the sessions of an
 * address divide its share equally.
 */
const mostBytes = 2 * 2 ** 30
/** Maximum characters of an idempotency key. */
const longestKey = 256

/** Options of `Sessions`. */
export interface SessionsSetup {
  /** Seconds without a request after which a session ends. */
  readonly silence: number
  readonly departures: Departures
  readonly onError: (error: unknown) => void
}

/** Sessions of a server. Ids of models, samplers and requests start with the id of their session. */
export class Sessions {
  readonly #setup: SessionsSetup
  readonly #sessions = new Map<string, Session>()
  readonly #byKey = new Map<string, Session>()
  readonly #sweep: NodeJS.Timeout
  #count = 0

  constructor(setup: SessionsSetup) {
    this.#setup = setup
    this.#sweep = setInterval(() => this.#endSilent(), 1000).unref()
  }

  get size(): number {
    return this.#sessions.size
  }

  [Symbol.iterator](): Iterator<Session> {
    return this.#sessions.values()
  }

  /**
   * Starts a session for a client address, or returns the one that was started with the same idempotency key.
   *
   * @throws ApiError 400 for a key that is too long, 429 for too many sessions
   */
  begin(address: string, key: string = randomUUID()): Session {
    if (key.length > longestKey)
      throw new ApiError(400, `x-idempotency-key has ${key.length} characters; the maximum is ${longestKey}.`)
    const before = this.#byKey.get(key)
    if (before) return before
    const ofAddress = [...this.#sessions.values()].filter((session) => session.address === address)
    if (ofAddress.length >= mostOfAddress) this.#endUnused(ofAddress, `${mostOfAddress} sessions of this address`)
    else if (this.#sessions.size >= mostSessions)
      this.#endUnused([...this.#sessions.values()], `${mostSessions} sessions`)
    const { departures, onError } = this.#setup
    const mayHold = (bytes: number) => {
      const { bytes: held } = session.results
      return held === 0 || held + bytes <= this.#share(session)
    }
    const session: Session = new Session({ client: ++this.#count, address, departures, onError, mayHold })
    this.#sessions.set(session.id, session)
    this.#byKey.set(key, session)
    session.signal.addEventListener("abort", () => this.#byKey.delete(key), { once: true })
    return session
  }

  /** Whether a session exists. Does not count as a request of the session. */
  has(id: string): boolean {
    return this.#sessions.has(id)
  }

  /** Returns a session. Throws `ApiError` 404 for an unknown or ended one. */
  find(id: string): Session {
    const session = this.#contacted(id)
    if (!session) throw new ApiError(404, `The session ${short(id)} does not exist or has ended.`)
    return session
  }

  /** Returns the session of the id of a model, sampler or request. */
  of(id: string): Session | undefined {
    return this.#contacted(id.split(":", 1)[0]!)
  }

  /** Returns a model and its session. Throws `ApiError` 404. */
  model(id: string): { readonly session: Session; readonly model: ServedModel } {
    const session = this.of(id)
    const model = session?.models.get(id)
    if (!session || !model) throw new ApiError(404, `The model ${short(id)} does not exist.`)
    return { session, model }
  }

  /** Returns the weights of a sampling session and its session. Throws `ApiError` 404. */
  sampling(id: string): { readonly session: Session; readonly source: Source } {
    const session = this.of(id)
    const source = session?.sourceOf(id)
    if (!session || !source) throw new ApiError(404, `The sampling session ${short(id)} does not exist.`)
    return { session, source }
  }

  /** Ends a session: cancels its requests and frees its models. */
  async end(session: Session): Promise<void> {
    this.#sessions.delete(session.id)
    await session.end()
  }

  async dispose(): Promise<void> {
    clearInterval(this.#sweep)
    await Promise.all([...this.#sessions.values()].map((session) => this.end(session)))
  }

  #contacted(id: string): Session | undefined {
    const session = this.#sessions.get(id)
    if (session) session.lastContact = performance.now()
    return session
  }

  #endSilent(): void {
    for (const session of this.#sessions.values())
      if (performance.now() - session.lastContact > this.#setup.silence * 1000)
        void this.end(session).catch(this.#setup.onError)
  }

  /** Ends an unused session to make room for a new client. Throws `ApiError` 429 where there is none. */
  #endUnused(sessions: readonly Session[], many: string): void {
    const unused = sessions.find((session) => session.unused)
    if (unused) return void this.end(unused).catch(this.#setup.onError)
    throw new ApiError(429, `There are already ${many}; end one, or try again later.`)
  }

  /** Returns the maximum bytes of a session: an equal share per address with sessions in use, divided equally among these sessions. */
  #share(session: Session): number {
    const holding = [...this.#sessions.values()].filter((one) => one === session || one.results.bytes > 0)
    const addresses = new Set(holding.map(({ address }) => address))
    return mostBytes / addresses.size / holding.filter(({ address }) => address === session.address).length
  }
}

const short = (id: string) => id.slice(0, 200)
