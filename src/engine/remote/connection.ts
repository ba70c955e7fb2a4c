import { setTimeout as wait } from "node:timers/promises"
import { type JsonLimits, jsonExcess } from "../../tinker/bounded-json.ts"
import { GigpoError } from "../../util/errors.ts"
import { checkKeyAddress } from "../../util/key-address.ts"
import { atOnce } from "../../util/pace.ts"
import { warner } from "../../util/warn.ts"
import { type Answer, exchange, TooLongError } from "./exchange.ts"
import { hopeless, isTlsError, tooLate, unusable } from "./first-contact.ts"
import { excerpt, MaybeTaken, refused } from "./refused.ts"

/** Options of `Connection`. */
export interface ConnectionOptions {
  /** URL of the server, without /api/v1. */
  readonly url: string
  readonly key?: string | undefined
  /** Whether the key may be sent to another machine over plain http. Default false. */
  readonly plainHttp?: boolean | undefined
  /** Timeout in seconds for accepting a request or reporting its result, over all attempts. Default 300. */
  readonly requestTimeout?: number | undefined
  /** Timeout in seconds for the first response of the server, over all attempts. Default 10. */
  readonly connectTimeout?: number | undefined
  readonly onWarning?: ((message: string) => void) | undefined
}

/** One HTTP request. */
export interface Call {
  readonly path: string
  /** Body of a POST: JSON, or the bytes of a protocol buffer. Without a body, the request is a GET. */
  readonly body?: object | Uint8Array | undefined
  /** Method of a request without a body. Default GET. */
  readonly method?: "GET" | "DELETE" | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Whether the response may be a protocol buffer. Default false. */
  readonly protobuf?: boolean | undefined
  /** Maximum bytes of the response. Default 1 MiB. */
  readonly most?: number | undefined
  /** Timeout of one attempt in milliseconds. Default 60,000. */
  readonly within?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** Outcome of one attempt. */
export type Outcome =
  | { readonly kind: "answered"; readonly body: unknown; readonly bytes?: Uint8Array }
  /** Rejected permanently: repeating the request does not help. */
  | { readonly kind: "refused"; readonly status: number; readonly reason: string; readonly code?: undefined }
  /** Not accepted by the server: any request may be repeated, after `after` milliseconds if the server specifies it. */
  | {
      readonly kind: "not-taken"
      readonly status: number
      readonly reason: string
      readonly after?: number | undefined
      /** Node's error code of a failure without response. */
      readonly code?: string | undefined
    }
  /** The server may have accepted the request. */
  | {
      readonly kind: "unknown"
      readonly status: number
      readonly reason: string
      readonly code?: string | undefined
    }

/** Maximum bytes of a response without data. */
export const shortAnswer = 2 ** 20
/** Limits of any JSON response, so that it can be parsed in about a second. */
const jsonLimits: JsonLimits = { strings: 2 ** 17, values: 2 ** 22 }

/** Number of failed attempts of a request after which an outage is reported; they take more than a second. */
export const attemptsToTell = 3
/** Minimum and maximum milliseconds between attempts; the interval doubles each time. */
const [shortest, longest] = [500, 30_000]
/** Interval and total time of attempts, in milliseconds, while the server reports an unpaid bill (402). */
const billing = { every: 5000, most: 3_600_000 }

/** HTTP connection to one server of the Tinker API. The key is sent in headers only, and never logged. */
export class Connection {
  readonly url: string
  readonly onWarning: (message: string) => void
  readonly #key: string | undefined
  /** Timeout in milliseconds for accepting a request or reporting its result. */
  readonly requestTimeout: number
  readonly #connectTimeout: number
  #met = false
  #outage: Outage | undefined
  #reported: Outage | undefined

  /** @throws GigpoError `BAD_ARGUMENT` for an invalid address or key. */
  constructor({
    url,
    key,
    plainHttp = false,
    requestTimeout = 300,
    connectTimeout = 10,
    onWarning,
  }: ConnectionOptions) {
    if (!/^https?:\/\//.test(url) || !URL.canParse(url))
      throw new GigpoError(
        "BAD_ARGUMENT",
        `${JSON.stringify(url)} is not the address of an engine; give it as https://host:port.`,
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
    this.requestTimeout = requestTimeout * 1000
    this.#connectTimeout = Math.min(connectTimeout, requestTimeout) * 1000
    this.onWarning = warner(onWarning)
  }

  /** Current outage; undefined while the server answers. */
  get outage(): Outage | undefined {
    return this.#outage
  }

  /** Called when the server has proved to be one of the API. From then on, the timeout is `requestTimeout` instead of `connectTimeout`. */
  met(): void {
    this.#met = true
  }

  /** Sends a request once. Throws only if the caller's signal is aborted. */
  async attempt(call: Call): Promise<Outcome> {
    const outcome = await this.#attempt(call)
    this.#note(call.path, outcome)
    return outcome
  }

  async #attempt({
    path,
    body,
    method = "GET",
    headers,
    protobuf,
    most = shortAnswer,
    within = 60_000,
    signal,
  }: Call): Promise<Outcome> {
    signal?.throwIfAborted()
    try {
      const answer = await exchange(new URL(`${this.url}/api/v1${path}`), {
        method: body ? "POST" : method,
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

  /** Removes the key from the reason, which is logged and may repeat the key. */
  #withoutKey(outcome: Outcome): Outcome {
    if (outcome.kind === "answered" || this.#key === undefined) return outcome
    return { ...outcome, reason: outcome.reason.replaceAll(this.#key, "[the key]") }
  }

  #note(path: string, outcome: Outcome): void {
    // 408 is the regular response to a request for a result that is not ready yet.
    if (outcome.kind === "answered" || outcome.kind === "refused" || outcome.status === 408) {
      this.#outage = undefined
      return
    }
    const { status, reason } = outcome
    this.#outage ??= { since: performance.now(), path, reason: status === 0 ? reason : `${status}: ${reason}` }
  }

  /** Warns of a lasting outage, once per outage. */
  warnOfOutage(): void {
    if (!this.#outage || this.#outage === this.#reported) return
    this.#reported = this.#outage
    const { path, reason } = this.#outage
    this.onWarning(
      `The engine at ${this.url} does not answer ${path} (${reason}). The request is repeated for up to ${this.requestTimeout / 1000} s.`,
    )
  }

  /** Opens a download, and follows one redirect. The key is not sent to another server. */
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
        `The engine at ${this.url} redirects ${url.pathname} to an address without TLS, which is rejected.`,
      )
    return await this.#get(next, next.origin === url.origin ? this.#keys() : {}, signal)
  }

  async #get(url: URL, headers: Record<string, string>, signal: AbortSignal | undefined): Promise<Response> {
    try {
      return await fetch(url, { headers, redirect: "manual", ...(signal && { signal }) })
    } catch (cause) {
      signal?.throwIfAborted()
      throw new GigpoError(
        "ENGINE_LOST",
        `The download of ${url.pathname} from the engine at ${this.url} failed: ${describe(cause)}`,
        {
          cause,
        },
      )
    }
  }

  #keys(): Record<string, string> {
    return this.#key === undefined ? {} : { "x-api-key": this.#key, authorization: `Bearer ${this.#key}` }
  }

  /**
   * Sends a request until it is accepted.
   *
   * @param again - whether the request may be repeated after the server may have accepted it, because it changes nothing or the server
   * recognizes repeated requests.
   * @throws GigpoError `ENGINE_REJECTED` if the server rejects; `ENGINE_LOST` if it does not answer in time, or may have accepted
   * a request that must not be repeated.
   */
  async send(call: Call, again: boolean): Promise<Extract<Outcome, { kind: "answered" }>> {
    const began = performance.now()
    let [pause, attempts] = [shortest, 0]
    for (; ; pause = Math.min(2 * pause, longest)) {
      const first = !this.#met
      const rest = this.#connectTimeout - (performance.now() - began)
      const outcome = await this.attempt(first ? { ...call, within: Math.min(call.within ?? rest, rest) } : call)
      if (outcome.kind === "answered") return outcome
      const { kind, status, reason } = outcome
      if (first) this.#checkContact(call.path, outcome, performance.now() - began)
      if (kind === "refused") throw refused(call.path, status, reason)
      if (++attempts === attemptsToTell) this.warnOfOutage()
      const unpaid = status === 402
      if (kind === "unknown" && !again) throw new MaybeTaken(this.url, call.path, reason)
      if (performance.now() - began > (unpaid ? billing.most : this.requestTimeout))
        throw new GigpoError(
          "ENGINE_LOST",
          `The engine at ${this.url} has not accepted ${call.path} for ${Math.round((performance.now() - began) / 1000)} s: ${reason}. ` +
            "Saved weights are kept; resume the run when the engine answers again.",
        )
      const after = kind === "not-taken" ? outcome.after : undefined
      const usual = unpaid ? billing.every : (after ?? pause * (0.75 + Math.random() / 4))
      const left = this.#connectTimeout - (performance.now() - began)
      await wait(first ? Math.max(Math.min(usual, left - shortest), 0) : usual, undefined, { signal: call.signal })
    }
  }

  /** Throws for a first request that cannot succeed by repetition, or was not answered in time. */
  #checkContact(path: string, outcome: Exclude<Outcome, { kind: "answered" }>, elapsed: number): void {
    const { kind, status } = outcome
    const why = hopeless(outcome, this.#key !== undefined)
    if (why !== undefined) throw unusable(this.url, path, why, status)
    if (kind !== "refused" && elapsed > this.#connectTimeout - shortest)
      throw unusable(this.url, path, tooLate(outcome, this.#connectTimeout / 1000), 0)
  }
}

/** Period in which a server does not answer. */
export interface Outage {
  /** `performance.now()` of the first failed attempt. */
  readonly since: number
  /** Path of the request that failed first. */
  readonly path: string
  /** Reason of the failure. */
  readonly reason: string
}

/** Throws for an address with credentials, a query or a fragment, and for a key that is not valid in a header. Messages show neither. */
function checkAddress(address: string, key: string | undefined): void {
  const url = new URL(address)
  const refuse = (what: string) => new GigpoError("BAD_ARGUMENT", what)
  if (url.username !== "" || url.password !== "")
    throw refuse("The engine's address contains a user or password: remove them, and set the key in TINKER_API_KEY.")
  if (/[?#]/.test(address))
    throw refuse("The engine's address contains a query or fragment: give only https://host:port.")
  if (key !== undefined && /[^\x21-\x7e]/.test(key))
    throw refuse(
      "The engine's key (TINKER_API_KEY) contains a line break, a space or another character that is not valid in a header.",
    )
}

function read({ status, statusText, headers, bytes }: Answer): Outcome {
  const protobuf = /protobuf/.test(headers["content-type"] ?? "")
  if (status >= 200 && status < 300) {
    if (protobuf) return { kind: "answered", body: undefined, bytes }
    const body = parse(bytes)
    return body === undefined && bytes.length > 0
      ? {
          kind: "unknown",
          status,
          reason: `its response is not JSON but ${headers["content-type"] ?? "of unknown type"}`,
        }
      : { kind: "answered", body }
  }
  const reason = excerpt(headers.location ?? (reasonOf(bytes) || statusText || "it gives no reason"))
  if (status === 409 && /reused/i.test(reason)) return { kind: "refused", status, reason }
  if (status === 400 && bytes.length === 0) return { kind: "unknown", status, reason }
  if ([402, 408, 409, 425, 429, 503].includes(status))
    return { kind: "not-taken", status, reason, after: retryAfter(headers) }
  return { kind: status >= 500 ? "unknown" : "refused", status, reason }
}

/** Returns the requested delay in milliseconds; undefined for none, or one above a minute. */
function retryAfter(headers: Answer["headers"]): number | undefined {
  const milliseconds = Number(headers["retry-after-ms"] ?? Number(headers["retry-after"] ?? Number.NaN) * 1000)
  return milliseconds >= 0 && milliseconds <= 60_000 ? milliseconds : undefined
}

function parse(bytes: Buffer): unknown {
  try {
    const text = bytes.toString("utf8")
    return atOnce(jsonExcess(text, jsonLimits)) === undefined ? JSON.parse(text) : undefined
  } catch {
    return undefined
  }
}

/** Returns the reason of a failure; servers use different fields. */
function reasonOf(bytes: Buffer): string {
  const body = parse(bytes)
  const { detail, error, message } = (body ?? {}) as Record<string, unknown>
  const found = detail ?? (error as { message?: unknown } | undefined)?.message ?? error ?? message ?? body
  return excerpt(found ?? bytes.toString("utf8", 0, 2000))
}

/** Whether a request may have been sent before the error occurred. */
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
