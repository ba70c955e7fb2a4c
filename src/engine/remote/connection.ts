import { setTimeout as wait } from "node:timers/promises"
import { type JsonLimits, jsonExcess } from "../../tinker/bounded-json.ts"
import { GigpoError } from "../../util/errors.ts"
import { checkKeyAddress } from "../../util/key-address.ts"
import { warner } from "../../util/warn.ts"
import { type Answer, exchange, TooLongError } from "./exchange.ts"
import { hopeless, isTlsError, tooLate, unusable } from "./first-contact.ts"
import { excerpt, MaybeTaken, refused } from "./refused.ts"

export interface ConnectionOptions {
  /** Where the API's paths begin: what stands before /api/v1. */
  readonly url: string
  readonly key?: string | undefined
  /** Whether the key may be sent to another machine over plain http. Default false. */
  readonly plainHttp?: boolean | undefined
  /** Seconds in which a request must be taken, or a question about its result answered, over all attempts. Default 300. */
  readonly patience?: number | undefined
  /** Seconds in which the server must answer for the first time, over all attempts. Default 10. */
  readonly contact?: number | undefined
  readonly onWarning?: ((message: string) => void) | undefined
}

export interface Call {
  readonly path: string
  /** JSON, or bytes of a protocol buffer. Without one it is a GET. */
  readonly body?: object | Uint8Array | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Whether the answer may be a protocol buffer. Default false. */
  readonly protobuf?: boolean | undefined
  /** Bytes that its answer may have. Default 1 MiB. */
  readonly most?: number | undefined
  /** Milliseconds that one attempt may take. Default 60,000. */
  readonly within?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** What came of one attempt. */
export type Outcome =
  | { readonly kind: "answered"; readonly body: unknown; readonly bytes?: Uint8Array }
  /** The server said no, and will again. */
  | { readonly kind: "refused"; readonly status: number; readonly reason: string; readonly code?: undefined }
  /** It was not taken: it may be sent again whatever it does. `after` milliseconds, where the server says when. */
  | {
      readonly kind: "not-taken"
      readonly status: number
      readonly reason: string
      readonly after?: number | undefined
      /** Node's code of what failed before there was an answer. */
      readonly code?: string | undefined
    }
  /** It may have been taken. */
  | {
      readonly kind: "unknown"
      readonly status: number
      readonly reason: string
      readonly code?: string | undefined
    }

/** Bytes of an answer that says no more than what was done. */
export const shortAnswer = 2 ** 20
/** What an answer in JSON may hold, whatever was asked: names and numbers that take a second to parse. */
const jsonLimits: JsonLimits = { strings: 2 ** 17, values: 2 ** 22 }

/** Failed attempts of one request after which an outage is reported: more than a second. */
export const attemptsToTell = 3
/** Milliseconds between attempts: doubled from the one to the other. */
const [shortest, longest] = [500, 30_000]
/** Milliseconds between questions whether a bill has been paid, and how long they go on. */
const billing = { every: 5000, most: 3_600_000 }

/** HTTP to one server of the Tinker API. The key goes into a header, and nowhere else. */
export class Connection {
  readonly url: string
  readonly onWarning: (message: string) => void
  readonly #key: string | undefined
  /** Milliseconds. */
  readonly patience: number
  readonly #contact: number
  #met = false
  #outage: Outage | undefined
  #told: Outage | undefined

  /** @throws GigpoError `BAD_ARGUMENT` for what is no address. */
  constructor({ url, key, plainHttp = false, patience = 300, contact = 10, onWarning }: ConnectionOptions) {
    if (!/^https?:\/\//.test(url) || !URL.canParse(url))
      throw new GigpoError(
        "BAD_ARGUMENT",
        `${JSON.stringify(url)} is no address of an engine; give one as https://host:port.`,
      )
    checkAddress(url, key)
    if (key !== undefined && !plainHttp)
      checkKeyAddress(
        new URL(url),
        "The engine's key (TINKER_API_KEY)",
        "set engine.plainHttp (in code: plainHttp: true)",
      )
    this.url = url.replace(/(?<!\/)\/+$/, "").replace(/\/api\/v1$/, "")
    this.#key = key
    this.patience = patience * 1000
    this.#contact = Math.min(contact, patience) * 1000
    this.onWarning = warner(onWarning)
  }

  /** What keeps the server from answering; undefined while it answers. */
  get outage(): Outage | undefined {
    return this.#outage
  }

  /** The server has shown that it is one of the API: from now on `patience` counts. */
  met(): void {
    this.#met = true
  }

  /** Sends once. Throws where the caller's signal is aborted, and for nothing else. */
  async attempt(call: Call): Promise<Outcome> {
    const outcome = await this.#attempt(call)
    this.#note(call.path, outcome)
    return outcome
  }

  async #attempt({
    path,
    body,
    headers,
    protobuf,
    most = shortAnswer,
    within = 60_000,
    signal,
  }: Call): Promise<Outcome> {
    signal?.throwIfAborted()
    try {
      const answer = await exchange(new URL(`${this.url}/api/v1${path}`), {
        method: body ? "POST" : "GET",
        headers: {
          accept: protobuf ? "application/x-protobuf, application/json" : "application/json",
          ...(body && { "content-type": body instanceof Uint8Array ? "application/x-protobuf" : "application/json" }),
          ...this.#keys(),
          ...headers,
        },
        body: body && !(body instanceof Uint8Array) ? JSON.stringify(body) : body,
        ...{ most, within, signal },
      })
      return this.#withoutKey(read(answer))
    } catch (error) {
      signal?.throwIfAborted()
      const reason = describe(error)
      if (error instanceof TooLongError) return { kind: "refused", status: 0, reason }
      const { code } = error as { code?: string }
      return { kind: wasSent(error) ? "unknown" : "not-taken", status: 0, reason, code }
    }
  }

  /** A server may say which key it was sent, and what it says is logged. */
  #withoutKey(outcome: Outcome): Outcome {
    if (outcome.kind === "answered" || this.#key === undefined) return outcome
    return { ...outcome, reason: outcome.reason.replaceAll(this.#key, "[the key]") }
  }

  #note(path: string, outcome: Outcome): void {
    // 408 answers a question about a result that the server has held open.
    if (outcome.kind === "answered" || outcome.kind === "refused" || outcome.status === 408) {
      this.#outage = undefined
      return
    }
    const { status, reason } = outcome
    this.#outage ??= { since: performance.now(), path, reason: status === 0 ? reason : `${status}: ${reason}` }
  }

  /** Warns once of an outage that lasts. */
  warnOfOutage(): void {
    if (!this.#outage || this.#outage === this.#told) return
    this.#told = this.#outage
    const { path, reason } = this.#outage
    this.onWarning(
      `The engine at ${this.url} does not answer ${path} (${reason}). It is asked again for up to ${this.patience / 1000} s.`,
    )
  }

  /** Opens what may be long. The key goes to this server alone, wherever it sends one on to. */
  async download(path: string, signal?: AbortSignal): Promise<Response> {
    const url = new URL(`${this.url}/api/v1${path}`)
    const first = await this.#get(url, this.#keys(), signal)
    const location = first.headers.get("location")
    if (first.status < 300 || first.status >= 400 || location === null) return first
    await first.body?.cancel()
    const next = new URL(location, url)
    if (next.protocol !== "https:" && next.protocol !== url.protocol)
      throw new GigpoError(
        "ENGINE_LOST",
        `The engine at ${this.url} sends ${url.pathname} on to an address without TLS.`,
      )
    return await this.#get(next, next.origin === url.origin ? this.#keys() : {}, signal)
  }

  async #get(url: URL, headers: Record<string, string>, signal: AbortSignal | undefined): Promise<Response> {
    try {
      return await fetch(url, { headers, redirect: "manual", ...(signal && { signal }) })
    } catch (cause) {
      signal?.throwIfAborted()
      throw new GigpoError("ENGINE_LOST", `The engine at ${this.url} gives no ${url.pathname}: ${describe(cause)}`, {
        cause,
      })
    }
  }

  #keys(): Record<string, string> {
    return this.#key === undefined ? {} : { "x-api-key": this.#key, authorization: `Bearer ${this.#key}` }
  }

  /**
   * Sends until it is taken.
   *
   * @param again - whether it may be sent again where the server may have taken it: where it does nothing, or the server knows it again.
   * @throws GigpoError `ENGINE_REFUSED` where the server says no; `ENGINE_LOST` where it cannot be reached in time, or where a request
   * that must not be sent twice may have been taken.
   */
  async send(call: Call, again: boolean): Promise<Extract<Outcome, { kind: "answered" }>> {
    const began = performance.now()
    let [pause, attempts] = [shortest, 0]
    for (; ; pause = Math.min(2 * pause, longest)) {
      const first = !this.#met
      const rest = this.#contact - (performance.now() - began)
      const outcome = await this.attempt(first ? { ...call, within: Math.min(call.within ?? rest, rest) } : call)
      if (outcome.kind === "answered") return outcome
      const { kind, status, reason } = outcome
      if (first) this.#checkContact(call.path, outcome, performance.now() - began)
      if (kind === "refused") throw refused(call.path, status, reason)
      if (++attempts === attemptsToTell) this.warnOfOutage()
      const unpaid = status === 402
      if (kind === "unknown" && !again) throw new MaybeTaken(this.url, call.path, reason)
      if (performance.now() - began > (unpaid ? billing.most : this.patience))
        throw new GigpoError(
          "ENGINE_LOST",
          `The engine at ${this.url} has not taken ${call.path} for ${Math.round((performance.now() - began) / 1000)} s: ${reason}. ` +
            "What is saved stays; resume when it answers again.",
        )
      const after = kind === "not-taken" ? outcome.after : undefined
      const usual = unpaid ? billing.every : (after ?? pause * (0.75 + Math.random() / 4))
      const left = this.#contact - (performance.now() - began)
      await wait(first ? Math.max(Math.min(usual, left - shortest), 0) : usual, undefined, { signal: call.signal })
    }
  }

  /** Gives up what would not be answered however often it is sent, or has not been in time. */
  #checkContact(path: string, outcome: Exclude<Outcome, { kind: "answered" }>, elapsed: number): void {
    const { kind, status } = outcome
    const why = hopeless(outcome, this.#key !== undefined)
    if (why !== undefined) throw unusable(this.url, path, why, status)
    if (kind !== "refused" && elapsed > this.#contact - shortest)
      throw unusable(this.url, path, tooLate(outcome, this.#contact / 1000), 0)
  }
}

/** A server that does not answer. */
export interface Outage {
  /** `performance.now()` of the first failed attempt. */
  readonly since: number
  /** The request that failed first, and why. */
  readonly path: string
  readonly reason: string
}

/** Refuses an address that says more than where the server is, and a key that no header can hold. Shows neither. */
function checkAddress(address: string, key: string | undefined): void {
  const url = new URL(address)
  const refuse = (what: string) => new GigpoError("BAD_ARGUMENT", what)
  if (url.username !== "" || url.password !== "")
    throw refuse("The engine's address holds a user or a password: leave them out, and give the key by TINKER_API_KEY.")
  if (/[?#]/.test(address))
    throw refuse("The engine's address holds a query or a fragment: give it as https://host:port alone.")
  if (key !== undefined && /[^\x21-\x7e]/.test(key))
    throw refuse(
      "The engine's key (TINKER_API_KEY) holds a line break, a space or another character that no header takes.",
    )
}

function read({ status, statusText, headers, bytes }: Answer): Outcome {
  const protobuf = /protobuf/.test(headers["content-type"] ?? "")
  if (status >= 200 && status < 300) {
    if (protobuf) return { kind: "answered", body: undefined, bytes }
    const body = parse(bytes)
    return body === undefined && bytes.length > 0
      ? { kind: "unknown", status, reason: `its answer is no JSON but ${headers["content-type"] ?? "something else"}` }
      : { kind: "answered", body }
  }
  const reason = excerpt(headers.location ?? (reasonOf(bytes) || statusText || "it gives no reason"))
  if (status === 409 && /reused/i.test(reason)) return { kind: "refused", status, reason }
  if (status === 400 && bytes.length === 0) return { kind: "unknown", status, reason }
  if ([402, 408, 409, 425, 429, 503].includes(status))
    return { kind: "not-taken", status, reason, after: retryAfter(headers) }
  return { kind: status >= 500 ? "unknown" : "refused", status, reason }
}

/** Milliseconds, at most a minute. */
function retryAfter(headers: Answer["headers"]): number | undefined {
  const milliseconds = Number(headers["retry-after-ms"] ?? Number(headers["retry-after"] ?? Number.NaN) * 1000)
  return milliseconds >= 0 && milliseconds <= 60_000 ? milliseconds : undefined
}

function parse(bytes: Buffer): unknown {
  try {
    const text = bytes.toString("utf8")
    return jsonExcess(text, jsonLimits) === undefined ? JSON.parse(text) : undefined
  } catch {
    return undefined
  }
}

/** What servers say of a failure, in whatever field they put it. */
function reasonOf(bytes: Buffer): string {
  const body = parse(bytes)
  const { detail, error, message } = (body ?? {}) as Record<string, unknown>
  const told = detail ?? (error as { message?: unknown } | undefined)?.message ?? error ?? message ?? body
  return excerpt(told ?? bytes.toString("utf8", 0, 2000))
}

/** Whether there was a connection to send it on. */
function wasSent(error: unknown): boolean {
  const { syscall, errors, code } = error as {
    syscall?: string
    errors?: readonly { syscall?: string }[]
    code?: string
  }
  if (isTlsError(code)) return false
  return !["connect", "getaddrinfo"].includes(syscall ?? errors?.[0]?.syscall ?? "")
}

function describe(error: unknown): string {
  const { message, code, errors } = error as { message?: string; code?: string; errors?: readonly Error[] }
  return message || errors?.at(-1)?.message || code || String(error)
}
