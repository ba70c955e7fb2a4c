import { GigpoError } from "../../util/errors.ts"
import { checkKeyAddress } from "../../util/key-address.ts"

/** Addresses of an OpenEnv server. */
export interface ServerAddress {
  /** Address of the WebSocket, e.g. `ws://host:8000/ws`. */
  readonly socket: URL
  /** Address of the JSON Schemas of its messages, e.g. `http://host:8000/schema`. */
  readonly schema: URL
  /** Address of the WebSocket without user name and password, for messages. */
  readonly name: string
}

/**
 * Parses a ws, wss, http or https address; `/ws` is appended if it is missing.
 *
 * @param plainHttp - whether a password in the address may be sent to another machine unencrypted
 * @throws GigpoError `BAD_CONFIG` for any other address, `BAD_ARGUMENT` for a password that would be sent unencrypted
 */
export function serverAddress(text: string, plainHttp = false): ServerAddress {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const secure = { "ws:": false, "http:": false, "wss:": true, "https:": true }[url?.protocol ?? ""]
  if (!url || secure === undefined) {
    throw new GigpoError(
      "BAD_CONFIG",
      `openenv: url must be an address like "http://127.0.0.1:8000", not ${JSON.stringify(text)}.`,
    )
  }
  if ((url.username || url.password) && !secure && !plainHttp)
    checkKeyAddress(url, "The password of openenv's url", "set openenv's option plainHttp")
  const base = url.pathname.replace(/(?<!\/)\/+$/, "").replace(/\/ws$/, "")
  // Setting `protocol` of a URL from ws to http has no effect, so new URLs are built.
  const rest = url.href.slice(url.protocol.length)
  const socket = new URL(`${secure ? "wss:" : "ws:"}${rest}`)
  socket.pathname = `${base}/ws`
  socket.hash = ""
  const schema = new URL(`${secure ? "https:" : "http:"}${rest}`)
  schema.pathname = `${base}/schema`
  schema.username = ""
  schema.password = ""
  schema.hash = ""
  return { socket, schema, name: `${socket.protocol}//${socket.host}${socket.pathname}` }
}
