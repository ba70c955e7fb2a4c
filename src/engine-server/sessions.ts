import { randomUUID } from "node:crypto"
import { ApiError } from "../chat/api-error.ts"
import type { Departures } from "./departures.ts"
import type { ServedModel } from "./served-model.ts"
import type { Source } from "./served-samplers.ts"
import { Session } from "./session.ts"

/** Sessions at once: in all, and of one client's address. */
const mostSessions = 128
const mostOfAddress = 64
/**
 * Bytes that all sessions together hold of requests that are not done and of results that were not fetched. Addresses have equal shares, and
 * so have the sessions of one address of the address's share.
 */
const mostBytes = 2 * 2 ** 30
/** Characters of a key by which a client repeats a request. */
const longestKey = 256

export interface SessionsSetup {
  /** Seconds without a sign of life after which a session ends. */
  readonly silence: number
  readonly departures: Departures
  readonly onError: (error: unknown) => void
}

/** The sessions that have not ended. Ids of what a session was given begin with the session's id. */
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
   * Begins a session of a client's address, or finds the one that was begun with the same key.
   *
   * @throws ApiError 429 where there are too many
   */
  begin(address: string, key: string = randomUUID()): Session {
    if (key.length > longestKey)
      throw new ApiError(400, `x-idempotency-key has ${key.length} characters; it may have ${longestKey}.`)
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

  /** Whether a session has not ended. This is no sign of life. */
  has(id: string): boolean {
    return this.#sessions.has(id)
  }

  /** @throws ApiError 404 for one that is unknown, or is over */
  find(id: string): Session {
    const session = this.#heard(id)
    if (!session) throw new ApiError(404, `There is no session ${short(id)}.`)
    return session
  }

  /** The session of an id that it was given for something. */
  of(id: string): Session | undefined {
    return this.#heard(id.split(":", 1)[0]!)
  }

  /** @throws ApiError 404 */
  model(id: string): { readonly session: Session; readonly model: ServedModel } {
    const session = this.of(id)
    const model = session?.models.get(id)
    if (!session || !model) throw new ApiError(404, `There is no model ${short(id)}.`)
    return { session, model }
  }

  /** @throws ApiError 404 */
  sampling(id: string): { readonly session: Session; readonly source: Source } {
    const session = this.of(id)
    const source = session?.sourceOf(id)
    if (!session || !source) throw new ApiError(404, `There is no sampling session ${short(id)}.`)
    return { session, source }
  }

  /** Cancels what a session has asked for, and frees what it was given. */
  async end(session: Session): Promise<void> {
    this.#sessions.delete(session.id)
    await session.end()
  }

  async dispose(): Promise<void> {
    clearInterval(this.#sweep)
    await Promise.all([...this.#sessions.values()].map((session) => this.end(session)))
  }

  #heard(id: string): Session | undefined {
    const session = this.#sessions.get(id)
    if (session) session.heard = performance.now()
    return session
  }

  #endSilent(): void {
    for (const session of this.#sessions.values())
      if (performance.now() - session.heard > this.#setup.silence * 1000)
        void this.end(session).catch(this.#setup.onError)
  }

  /** One that was begun and never used must not keep a new client out. */
  #endUnused(sessions: readonly Session[], many: string): void {
    const unused = sessions.find((session) => session.unused)
    if (unused) return void this.end(unused).catch(this.#setup.onError)
    throw new ApiError(429, `There are ${many}; end one, or try again when a client has left.`)
  }

  /** Bytes that a session may hold: an equal part for each address with sessions that hold any, and of it for each of these sessions. */
  #share(session: Session): number {
    const holding = [...this.#sessions.values()].filter((one) => one === session || one.results.bytes > 0)
    const addresses = new Set(holding.map(({ address }) => address))
    return mostBytes / addresses.size / holding.filter(({ address }) => address === session.address).length
  }
}

const short = (id: string) => id.slice(0, 200)
