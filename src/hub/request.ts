import { setTimeout as sleep } from "node:timers/promises"
import { GigpoError } from "../util/errors.ts"
import { isLoopback } from "../util/key-address.ts"
import { linkAbort } from "../util/linked-abort.ts"
import { version } from "../util/version.ts"
import { badAnswer, lost, networkReason, statusError } from "./errors.ts"
import type { HubName } from "./names.ts"
import type { HubSettings } from "./settings.ts"

/** Request for a model, with settings for retries. */
export interface Asking {
  readonly settings: HubSettings
  readonly name: HubName
  readonly signal: AbortSignal | undefined
  /** Maximum number of attempts of a request that yields no data. */
  readonly tries: number
  /** Milliseconds before the second attempt. The pause doubles after each further attempt. */
  readonly pause: number
  /** Milliseconds without data after which a connection is closed. */
  readonly silence: number
}

/** Maximum number of redirects of one request. */
const mostRedirects = 5
/** Maximum pause between two attempts, in milliseconds. */
const longestPause = 30_000

type Use<T> = (response: Response, alive: () => void) => Promise<T>

/**
 * Sends a request and passes the response to `use`, which reads the body and calls `alive` whenever bytes arrive. The token is sent only to
 * the origin of the endpoint.
 *
 * @throws GigpoError `HUB_LOST` for a missing or interrupted response; `HUB_REFUSED`; the reason of the signal; errors of `use`
 */
export async function request<T>(
  asking: Asking,
  url: string,
  init: {
    readonly method?: "GET" | "HEAD"
    readonly headers?: Readonly<Record<string, string>>
    readonly accept?: readonly number[]
  },
  use: Use<T>,
): Promise<T> {
  const { signal, silence, settings, name } = asking
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
    const response = await followed(settings, url, init, controller.signal)
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
  if (origin === new URL(settings.endpoint).origin) return statusError(response, name, settings)
  return lost(host, `answers with an error (${response.status})`)
}

/** Sends a request, follows redirects and returns the final response. */
async function followed(
  settings: HubSettings,
  start: string,
  { method = "GET", headers = {} }: { readonly method?: string; readonly headers?: Readonly<Record<string, string>> },
  signal: AbortSignal,
): Promise<Response> {
  const endpoint = new URL(settings.endpoint)
  let url = new URL(start)
  for (let hop = 0; hop <= mostRedirects; hop++) {
    const isOwn = url.origin === endpoint.origin
    const response = await fetch(url, {
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

/** Returns the target of a redirect. Schemes other than http and https, and redirects from https to http, are refused. */
function nextAddress(location: string, from: URL, endpoint: URL): URL {
  const next = URL.canParse(location, from.href) ? new URL(location, from) : undefined
  const isPlain = next?.protocol === "http:" && endpoint.protocol === "http:"
  if (next && (next.protocol === "https:" || (isPlain && isLoopback(next) === isLoopback(endpoint)))) return next
  throw badAnswer(endpoint.host, "a redirect to an address without https")
}

/** Repeats a request that fails with `HUB_LOST`, up to the maximum number of attempts. */
export async function tried<T>({ tries, pause, signal }: Asking, call: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await call()
    } catch (error) {
      if (!isLost(error) || attempt >= tries) throw error
      await waited(pause, attempt, signal)
    }
  }
}

/** Waits before the next attempt, with exponential backoff. */
export async function waited(pause: number, attempt: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await sleep(Math.min(pause * 2 ** (attempt - 1), longestPause), undefined, { ...(signal && { signal }) })
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
