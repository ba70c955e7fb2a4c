import { setTimeout as sleep } from "node:timers/promises"
import { GigpoError } from "../util/errors.ts"
import { isLoopback } from "../util/key-address.ts"
import { linkAbort } from "../util/linked-abort.ts"
import { version } from "../util/version.ts"
import { badAnswer, lost, networkReason, statusError } from "./errors.ts"
import type { HubName } from "./names.ts"
import { proxiedFetch } from "./proxy.ts"
import type { HubSettings } from "./settings.ts"

/** Request for a model, with settings for retries. */
export interface HubRequest {
  readonly settings: HubSettings
  readonly name: HubName
  readonly signal: AbortSignal | undefined
  /** Maximum number of attempts of a request that yields no data. */
  readonly tries: number
  /** Milliseconds before the second attempt. The pause doubles after each further attempt. */
  readonly pause: number
  /** Milliseconds without data after which a connection is closed. */
  readonly silence: number
  /** Waits between two attempts. */
  readonly sleep: (milliseconds: number, signal: AbortSignal | undefined) => Promise<void>
  /** Receives messages for the user. */
  readonly onNote: (text: string) => void
}

/** Maximum number of redirects of one request. */
const mostRedirects = 5
/** Maximum pause between two attempts, in milliseconds. */
const longestPause = 30_000
/** Maximum pause that a server may ask for, in milliseconds. The Hub counts requests in windows of five minutes. */
const longestRequestedWait = 300_000
/** Shortest pause that is reported to the user, in milliseconds. */
const reportedPause = 5000
/** Milliseconds that a server requested to wait, by error. */
const requestedWaits = new WeakMap<GigpoError, number>()

type Use<T> = (response: Response, alive: () => void) => Promise<T>

/**
 * Sends a request and passes the response to `use`, which reads the body and calls `alive` whenever bytes arrive. The token is sent only to
 * the origin of the endpoint.
 *
 * @throws GigpoError `HUB_LOST` for a missing or interrupted response; `HUB_REJECTED`; the reason of the signal; errors of `use`
 */
export async function request<T>(
  hubRequest: HubRequest,
  url: string,
  init: {
    readonly method?: "GET" | "HEAD"
    readonly headers?: Readonly<Record<string, string>>
    readonly accept?: readonly number[]
  },
  use: Use<T>,
): Promise<T> {
  const { signal, silence, settings, name } = hubRequest
  const { host } = new URL(url)
  const controller = new AbortController()
  const unlink = linkAbort(signal, controller)
  let timer: NodeJS.Timeout | undefined
  const alive = () => {
    clearTimeout(timer)
    timer = setTimeout(() => controller.abort(lost(host, `has sent nothing for ${silence / 1000} s`)), silence)
  }
  try {
    alive()
    const response = await followRedirects(settings, url, init, controller.signal)
    if (!response.ok && !init.accept?.includes(response.status)) throw failed(response, name, settings)
    alive()
    return await use(response, alive)
  } catch (cause) {
    signal?.throwIfAborted()
    if (GigpoError.is(cause)) throw cause
    throw lost(host, networkReason(cause), cause)
  } finally {
    clearTimeout(timer)
    unlink()
    controller.abort() // Discards the rest of the body.
  }
}

/** Returns the error for a failed response. An error of the file store is temporary, since its addresses expire. */
function failed(response: Response, name: HubName, settings: HubSettings): GigpoError {
  const { origin, host } = new URL(response.url)
  const wait = [429, 503].includes(response.status) ? retryAfter(response.headers.get("retry-after")) : 0
  const waitText = wait > 0 ? `, and asks to wait ${Math.ceil(wait / 1000)} s` : ""
  const error =
    origin === new URL(settings.endpoint).origin
      ? statusError(response, name, settings, waitText)
      : lost(host, `answers with an error (${response.status})${waitText}`)
  requestedWaits.set(error, wait)
  return error
}

/** Returns the milliseconds that a header Retry-After asks for, as seconds or a date; 0 without a valid one. */
function retryAfter(text: string | null): number {
  if (text !== null && /^\d{1,9}$/.test(text.trim())) return 1000 * Number(text)
  const wait = Date.parse(text ?? "") - Date.now()
  return wait > 0 ? wait : 0
}

/** Sends a request, follows redirects and returns the final response. */
async function followRedirects(
  settings: HubSettings,
  start: string,
  { method = "GET", headers = {} }: { readonly method?: string; readonly headers?: Readonly<Record<string, string>> },
  signal: AbortSignal,
): Promise<Response> {
  const endpoint = new URL(settings.endpoint)
  let url = new URL(start)
  for (let hop = 0; hop <= mostRedirects; hop++) {
    const isOwn = url.origin === endpoint.origin
    const response = await proxiedFetch(url, {
      method,
      redirect: "manual",
      signal,
      headers: {
        ...headers,
        "accept-encoding": "identity",
        "user-agent": `gigpo/${version}`,
        ...(isOwn && settings.token !== undefined && { authorization: `Bearer ${settings.token}` }),
      },
    })
    const location = response.headers.get("location")
    if (![301, 302, 303, 307, 308].includes(response.status) || location === null) return response
    await response.body?.cancel()
    // The headers of the first response describe the file, so the redirect need not be followed.
    if (method === "HEAD" && response.headers.has("x-linked-etag")) return response
    url = nextAddress(location, url, endpoint)
  }
  throw badAnswer(endpoint.host, `more than ${mostRedirects} redirects`)
}

/** Returns the target of a redirect. Schemes other than http and https, and redirects from https to http, are rejected. */
function nextAddress(location: string, from: URL, endpoint: URL): URL {
  const next = URL.canParse(location, from.href) ? new URL(location, from) : undefined
  const isPlain = next?.protocol === "http:" && endpoint.protocol === "http:"
  if (next && (next.protocol === "https:" || (isPlain && isLoopback(next) === isLoopback(endpoint)))) return next
  throw badAnswer(endpoint.host, "a redirect to an address without https")
}

/** Calls a function, and calls it again when it fails with `HUB_LOST`, up to the maximum number of attempts. */
export async function withRetries<T>(hubRequest: HubRequest, call: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await call()
    } catch (error) {
      await waitBeforeRetry(hubRequest, attempt, error)
    }
  }
}

/**
 * Waits before the next attempt, with exponential backoff, or as long as the server asks for.
 *
 * @throws the error, if it is permanent, if there are no attempts left, or if the server asks to wait more than five minutes; the reason of
 * the signal
 */
export async function waitBeforeRetry(hubRequest: HubRequest, attempt: number, error: unknown): Promise<void> {
  const { tries, pause, signal, sleep, onNote } = hubRequest
  if (!GigpoError.is(error) || !isLost(error) || attempt >= tries) throw error
  const requested = requestedWaits.get(error) ?? 0
  if (requested > longestRequestedWait) throw error
  if (requested >= reportedPause) onNote(`${error.message.split(". Try again")[0]}. Waiting.`)
  await sleep(Math.max(requested, Math.min(pause * 2 ** (attempt - 1), longestPause)), signal)
}

/** Waits, and ends with the reason of the signal when it is aborted. */
export async function pauseFor(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await sleep(milliseconds, undefined, { ...(signal && { signal }) })
  } catch {
    signal?.throwIfAborted()
  }
}

export function isLost(error: unknown): boolean {
  return GigpoError.is(error) && error.code === "HUB_LOST"
}

/** Reads a body of at most `most` bytes; undefined for a longer one, which is not read to its end. */
export async function bounded(response: Response, alive: () => void, most: number): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of response.body ?? []) {
    alive()
    length += chunk.length
    if (length > most) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
