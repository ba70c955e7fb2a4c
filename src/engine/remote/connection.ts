import { setTimeout as wait } from "node:timers/promises"
import { GigpoError } from "../../errors.ts"
import { type Answer, exchange, TooLongError } from "./exchange.ts"
import { MaybeTaken, refused } from "./refused.ts"

export interface ConnectionOptions {
  /** Where the API's paths begin: what stands before /api/v1. */
  readonly url: string
  readonly key?: string | undefined
  /** Seconds in which a request must be taken, or a question about its result answered, over all attempts. Default 300. */
  readonly patience?: number | undefined
  readonly onWarning?: ((message: string) => void) | undefined
}

export interface Call {
  readonly path: string
  /** JSON, or bytes of a protocol buffer. Without one it is a GET. */
  readonly body?: object | Uint8Array | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Whether the answer may be a protocol buffer. Default false. */
  readonly protobuf?: boolean | undefined
  /** Milliseconds that one attempt may take. Default 60,000. */
  readonly within?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** What came of one attempt. */
export type Outcome =
  | { readonly kind: "answered"; readonly body: unknown; readonly bytes?: Uint8Array }
  /** The server said no, and will again. */
  | { readonly kind: "refused"; readonly status: number; readonly reason: string }
  /** It was not taken: it may be sent again whatever it does. `after` milliseconds, where the server says when. */
  | {
      readonly kind: "not-taken"
      readonly status: number
      readonly reason: string
      readonly after?: number | undefined
    }
  /** It may have been taken. */
  | { readonly kind: "unknown"; readonly status: number; readonly reason: string }

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

  /** @throws GigpoError `BAD_ARGUMENT` for what is no address. */
  constructor({ url, key, patience = 300, onWarning = (message) => process.emitWarning(message) }: ConnectionOptions) {
    if (!/^https?:\/\//.test(url) || !URL.canParse(url))
      throw new GigpoError(
        "BAD_ARGUMENT",
        `${JSON.stringify(url)} is no address of an engine; give one as https://host:port.`,
      )
    this.url = url.replace(/\/+$/, "")
    this.#key = key
    this.patience = patience * 1000
    this.onWarning = onWarning
  }

  /** Sends once. Throws where the caller's signal is aborted, and for nothing else. */
  async attempt({ path, body, headers, protobuf, within = 60_000, signal }: Call): Promise<Outcome> {
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
        ...{ within, signal },
      })
      return read(answer)
    } catch (error) {
      signal?.throwIfAborted()
      const reason = describe(error)
      if (error instanceof TooLongError) return { kind: "refused", status: 0, reason }
      return { kind: wasSent(error) ? "unknown" : "not-taken", status: 0, reason }
    }
  }

  /** Opens what may be long. The key goes to this server alone, wherever it sends one on to. */
  async download(path: string, signal?: AbortSignal): Promise<Response> {
    const url = new URL(`${this.url}/api/v1${path}`)
    const first = await this.#get(url, this.#keys(), signal)
    const location = first.headers.get("location")
    if (first.status < 300 || first.status >= 400 || location === null) return first
    await first.body?.cancel()
    const next = new URL(location, url)
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
    for (let pause = shortest; ; pause = Math.min(2 * pause, longest)) {
      const outcome = await this.attempt(call)
      if (outcome.kind === "answered") return outcome
      const { kind, status, reason } = outcome
      if (kind === "refused") throw refused(call.path, status, reason)
      const unpaid = status === 402
      if (kind === "unknown" && !again) throw new MaybeTaken(this.url, call.path, reason)
      if (performance.now() - began > (unpaid ? billing.most : this.patience))
        throw new GigpoError(
          "ENGINE_LOST",
          `The engine at ${this.url} has not taken ${call.path} for ${Math.round((performance.now() - began) / 1000)} s: ${reason}. ` +
            "What is saved stays; resume when it answers again.",
        )
      const after = kind === "not-taken" ? outcome.after : undefined
      await wait(unpaid ? billing.every : (after ?? pause * (0.75 + Math.random() / 4)), undefined, {
        signal: call.signal,
      })
    }
  }
}

function read({ status, statusText, headers, bytes }: Answer): Outcome {
  const protobuf = /protobuf/.test(headers["content-type"] ?? "")
  if (status >= 200 && status < 300) {
    if (protobuf) return { kind: "answered", body: undefined, bytes }
    const body = parse(bytes)
    return body === undefined && bytes.length > 0
      ? { kind: "unknown", status, reason: "its answer is no JSON" }
      : { kind: "answered", body }
  }
  const reason = reasonOf(bytes) || statusText || "it gives no reason"
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

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString("utf8"))
  } catch {
    return undefined
  }
}

/** What servers say of a failure, in whatever field they put it; the first 500 characters. */
function reasonOf(bytes: Uint8Array): string {
  const body = parse(bytes)
  const { detail, error, message } = (body ?? {}) as Record<string, unknown>
  const told = detail ?? (error as { message?: unknown } | undefined)?.message ?? error ?? message ?? body
  const text =
    typeof told === "string" ? told : told === undefined ? Buffer.from(bytes).toString("utf8") : JSON.stringify(told)
  return text.slice(0, 500).trim()
}

/** Whether there was a connection to send it on. */
function wasSent(error: unknown): boolean {
  const { syscall, errors } = error as { syscall?: string; errors?: readonly { syscall?: string }[] }
  return !["connect", "getaddrinfo"].includes(syscall ?? errors?.[0]?.syscall ?? "")
}

function describe(error: unknown): string {
  const { message, code } = error as { message?: string; code?: string }
  return message || code || String(error)
}
