import type { IncomingMessage } from "node:http"
import { isIP } from "node:net"
import { ApiError } from "./api-error.ts"
import { keyOf } from "./key.ts"

/** Keys of a server, and its responses without a key. */
export interface Keys {
  /** Whether a key is valid, in constant time. */
  readonly known: (key: string) => boolean
  /** Whether GET and HEAD of a path are answered without a key, by work that does not depend on the request. Default: no path. */
  readonly open?: ((path: string) => boolean) | undefined
  /** Name of the cookie in which browsers send a key. Default: none. */
  readonly cookie?: string | undefined
  /** Message to a client with an invalid key. */
  readonly refusal: string
}

/** Host names and keys of a server. */
export interface Guard {
  /** Host names that clients may use, in lower case, with ports. */
  readonly names: ReadonlySet<string>
  /** Whether the server listens on all addresses of its machine. */
  readonly everywhere: boolean
  /** Absent: no key is required. */
  readonly keys: Keys | undefined
}

/** Request that passed the checks. */
export interface Passed {
  readonly url: string
  /** Whether the request has a valid key, or none is required. */
  readonly proven: boolean
}

/** Maximum bytes of a path with its query. */
const longestPath = 2048

/**
 * Checks Host, Origin, length of the path and key of a request, in this order, before any other processing. The work
 * does not depend on the request. Browser pages are rejected: a foreign Host indicates DNS rebinding, and a foreign
 * Origin a page of another site.
 *
 * @throws ApiError 400, 401, 403, 414 or 421
 */
export function pass({ headers, headersDistinct, method, url = "" }: IncomingMessage, guard: Guard): Passed {
  const { names, everywhere, keys } = guard
  const { host = "", origin } = headers
  // The addresses that lead here are unknown; a numeric host cannot be rebound.
  const known = (name: string) => names.has(name.toLowerCase())
  if (headersDistinct.host?.length !== 1 || !(known(host) || (everywhere && isAddress(host))))
    throw new ApiError(421, "Unknown host name (Host header); see the server's option for additional names.")
  if (origin !== undefined && !known(origin.replace(/^https?:\/\//i, "")))
    throw new ApiError(403, "Requests from pages of other origins are rejected.")
  if (url.length > longestPath)
    throw new ApiError(414, `The path with its query is too long; the maximum is ${longestPath} bytes.`)
  const path = pathOf(url, host)
  const proven = !keys || keys.known(keyOf((name) => headers[name] as string | undefined, keys.cookie))
  const [bare = ""] = path.split("?", 1)
  const reads = method === "GET" || method === "HEAD"
  if (!proven && !(reads && keys.open?.(bare))) throw new ApiError(401, keys.refusal, { code: "invalid_api_key" })
  return { url: `http://${host}${path}`, proven }
}

/** Path and query of a request line. Proxies may send a full URL there, whose host must be the checked one. */
function pathOf(target: string, host: string): string {
  if (target.startsWith("/")) return target
  const absolute = `http://${host}/`
  if (target.toLowerCase().startsWith(absolute.toLowerCase())) return target.slice(absolute.length - 1)
  throw new ApiError(400, "The request line must have a path of this server.")
}

/** Whether a host is a numeric address: 192.0.2.7:8080, [2001:db8::7]:8080. */
function isAddress(host: string): boolean {
  const [, name = ""] = /^(?:\[(.*)\]|([^:]*))(?::\d+)?$/.exec(host)?.filter((part) => part !== undefined) ?? []
  return isIP(name) !== 0
}
