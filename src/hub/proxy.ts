import type { ProxyAgent } from "undici"
import { GigpoError } from "../util/errors.ts"
import { isLoopback } from "../util/key-address.ts"
import { innermost, lost, networkReason, refused } from "./errors.ts"

// fetch() ignores the proxy settings of the environment in Node 20 and 22. undici, of which fetch() is a part, is loaded only where they apply.

/** Proxy for a request. */
export interface Proxy {
  readonly url: URL
  /** Environment variable that names it. */
  readonly variable: string
}

/**
 * Returns the proxy for an address by https_proxy or http_proxy, and no_proxy, also in capitals. As in curl, the small letters take precedence.
 * Addresses of this machine are contacted directly: no other proxy could reach them, and the token may be sent to them over plain http.
 *
 * @throws GigpoError `BAD_ARGUMENT` for a proxy that is not an http or https address
 */
export function proxyFor(address: URL, environment: NodeJS.ProcessEnv = process.env): Proxy | undefined {
  const name = address.protocol === "https:" ? "https_proxy" : "http_proxy"
  const variable = [name, name.toUpperCase()].find((one) => environment[one])
  const given = variable === undefined ? "" : environment[variable]!.trim()
  if (variable === undefined || given === "" || isLoopback(address)) return undefined
  if (isExcluded(address, environment.no_proxy || environment.NO_PROXY || "")) return undefined
  const text = given.includes("://") ? given : `http://${given}`
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url && /^https?:$/.test(url.protocol) && url.hostname !== "") return { url, variable }
  // The value may contain a password.
  throw new GigpoError(
    "BAD_ARGUMENT",
    `${variable} must be the http or https URL of a proxy, such as http://proxy.example:3128. Other kinds (SOCKS) are not supported.`,
  )
}

/** Whether no_proxy names a host: itself or a domain that it is in, with or without a port; * stands for all. */
function isExcluded({ hostname, port, protocol }: URL, list: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, "").toLowerCase()
  const own = port || (protocol === "https:" ? "443" : "80")
  const entries = list.toLowerCase().split(/[\s,]+/)
  return entries.some((entry) => {
    if (entry === "*") return true
    const [, named, only] =
      /^(.*?[^:])(?::(\d+))?$/.exec(/:.*:/.test(entry) ? entry.replace(/^\[|\]$/g, "") : entry) ?? []
    const domain = named?.replace(/^\*?\./, "")
    if (!domain || (only !== undefined && only !== own)) return false
    return host === domain || host.endsWith(`.${domain}`)
  })
}

type Init = RequestInit & { readonly signal: AbortSignal }

/**
 * `fetch`, through the proxy for the address if there is one. The proxy is asked for a tunnel, so that it learns the host of an https address
 * only, and never the token.
 *
 * @throws GigpoError `HUB_LOST` or `HUB_REJECTED` for errors of the proxy; without a proxy, errors of `fetch`
 */
export async function proxiedFetch(address: URL, init: Init): Promise<Response> {
  const proxy = proxyFor(address)
  if (!proxy) return await fetch(address, init)
  const { fetch: fetchThrough } = await import("undici")
  try {
    const options = { ...init, dispatcher: await agentOf(proxy) } as Parameters<typeof fetchThrough>[1]
    return (await fetchThrough(address, options)) as unknown as Response
  } catch (cause) {
    init.signal.throwIfAborted()
    throw proxyError(proxy, address, cause)
  }
}

/** Agents by the address of the proxy. They keep connections, so there is one for each. */
const agents = new Map<string, ProxyAgent>()

async function agentOf({ url }: Proxy): Promise<ProxyAgent> {
  const { ProxyAgent } = await import("undici")
  const found = agents.get(url.href) ?? new ProxyAgent({ uri: url.href, proxyTunnel: true })
  agents.set(url.href, found)
  return found
}

function proxyError({ url, variable }: Proxy, { host }: URL, cause: unknown): GigpoError {
  const through = `the proxy ${url.protocol}//${url.host} (${variable})`
  const inner = innermost(cause)
  const [, status] = /^Proxy response \((\d+)\)/.exec(inner instanceof Error ? inner.message : "") ?? []
  if (status === "407")
    return refused(
      `${host} cannot be reached: ${through} requires a user name and a password, or rejects those that are set. Set ${variable} to ` +
        `${url.protocol}//user:password@${url.host}.`,
    )
  if (status?.startsWith("4"))
    return refused(
      `${host} cannot be reached: ${through} refuses the connection (${status}). Ask its administrator, or name the host in NO_PROXY if it ` +
        "can be reached directly.",
    )
  const reason = status === undefined ? networkReason(cause) : `answers with an error (${status})`
  if (/certificate/.test(reason))
    return lost(`${host}, through ${through},`, `${reason}. NODE_EXTRA_CA_CERTS adds the certificate of a proxy`, cause)
  return lost(`${through[0]!.toUpperCase()}${through.slice(1)} for ${host}`, reason, cause)
}
