import { GigpoError } from "../../util/errors.ts"
import { checkKeyAddress } from "../../util/key-address.ts"

/** Where an OpenEnv server listens. */
export interface ServerAddress {
  /** The WebSocket: `ws://host:8000/ws`. */
  readonly socket: URL
  /** The JSON Schemas of its messages: `http://host:8000/schema`. */
  readonly schema: URL
  /** For messages: the socket's address without user name and password. */
  readonly name: string
}

/**
 * Takes ws, wss, http and https addresses; `/ws` is appended where it is missing.
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
  // A URL keeps its old scheme where only `protocol` is set from ws to http, so new ones are built.
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
