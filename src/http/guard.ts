import type { IncomingMessage } from "node:http"
import { isIP } from "node:net"
import { ApiError } from "./api-error.ts"
import { keyOf } from "./key.ts"

/** Keys of a server, and what it answers without one. */
export interface Keys {
  /** Whether a key is one of this server's; takes the same time for every key. */
  readonly known: (key: string) => boolean
  /** Whether a path is answered without a key, by work that does not depend on the request. Default: none is. */
  readonly open?: ((path: string) => boolean) | undefined
  /** Message to a client whose key is not known. */
  readonly refusal: string
}

/** Names of a server, and who may call it. */
export interface Guard {
  /** Hosts by which clients may call the server, in lower case, with their ports. */
  readonly names: ReadonlySet<string>
  /** Whether the server listens on every address of its machine. */
  readonly everywhere: boolean
  /** Absent: no key is needed. */
  readonly keys: Keys | undefined
}

/** Request that may be answered. */
export interface Passed {
  readonly url: string
  /** Whether the request has a key of the server, or none is needed. */
  readonly proven: boolean
}

/** Bytes of a path with its query. */
const longestPath = 2048

/**
 * Looks at a request before anything is made of it: Host, Origin, length of the path, key, in this order. The work does not depend on the
 * request. Pages of browsers are kept out: a Host that is not the server's is what DNS rebinding looks like, and a foreign Origin belongs
 * to a page that calls where it should not.
 *
 * @throws ApiError 400, 401, 403, 414 or 421
 */
export function pass({ headers, headersDistinct, url = "" }: IncomingMessage, guard: Guard): Passed {
  const { names, everywhere, keys } = guard
  const { host = "", origin } = headers
  // Which of the machine's addresses lead here is not known; a host that is written as numbers is no name that could be rebound.
  const known = (name: string) => names.has(name.toLowerCase())
  if (headersDistinct.host?.length !== 1 || !(known(host) || (everywhere && isAddress(host))))
    throw new ApiError(421, "This server does not go by that name (the Host header).")
  if (origin !== undefined && !known(origin.replace(/^https?:\/\//i, "")))
    throw new ApiError(403, "Pages of other origins may not call this server.")
  if (url.length > longestPath)
    throw new ApiError(414, `The path of a request may have ${longestPath} bytes with its query.`)
  const path = pathOf(url, host)
  const proven = !keys || keys.known(keyOf((name) => headers[name] as string | undefined))
  const [bare = ""] = path.split("?", 1)
  if (!proven && !keys.open?.(bare)) throw new ApiError(401, keys.refusal, { code: "invalid_api_key" })
  return { url: `http://${host}${path}`, proven }
}

/** Path and query of a request line; proxies may write a whole URL there, whose host must be the one that was checked. */
function pathOf(target: string, host: string): string {
  if (target.startsWith("/")) return target
  const absolute = `http://${host}/`
  if (target.toLowerCase().startsWith(absolute.toLowerCase())) return target.slice(absolute.length - 1)
  throw new ApiError(400, "The request line must have a path of this server.")
}

/** 192.0.2.7:8080, [2001:db8::7]:8080 */
function isAddress(host: string): boolean {
  const [, name = ""] = /^(?:\[(.*)\]|([^:]*))(?::\d+)?$/.exec(host)?.filter((part) => part !== undefined) ?? []
  return isIP(name) !== 0
}
