import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { type AddressInfo, isIP } from "node:net"
import { setTimeout as wait } from "node:timers/promises"
import { GigpoError } from "../util/errors.ts"
import { ApiError } from "./api-error.ts"
import { BodyBudget } from "./body-budget.ts"
import { type Connection, Connections } from "./connections.ts"
import { isDecoded } from "./decoded.ts"
import { connectionsFor } from "./descriptors.ts"
import { type Guard, type Keys, pass } from "./guard.ts"
import { streamOf } from "./stream-of.ts"
import { write, writeText } from "./write.ts"

export interface HttpOptions {
  /** Address to listen on. Default 127.0.0.1: this machine only. */
  readonly host?: string | undefined
  /** Port to listen on. Default 0: any free port. */
  readonly port?: number | undefined
  /** Additional host names of the server, besides `host` and loopback names, such as a proxy's. */
  readonly names?: readonly string[] | undefined
  /** Limits of connections and requests that differ from the defaults. */
  readonly limits?: Partial<HttpLimits> | undefined
}

export interface ListenOptions extends HttpOptions {
  /** Absent: no key is required, and only this machine may connect. */
  readonly keys?: Keys | undefined
  /** Content encodings of requests that `answer` decodes, such as zstd. Default: none. Gzip is decoded here. */
  readonly encodings?: readonly string[] | undefined
}

export interface HttpLimits {
  /**
   * Maximum concurrent connections; half of them per client address. Default 2048, limited so that 256 files can still
   * be opened.
   */
  readonly connections: number
  /** Maximum bytes of request bodies in memory; half of them per client address. Default 512 MiB. */
  readonly bodies: number
  /**
   * Milliseconds that a connection without a key may wait for its first request and between requests. Default 5000.
   */
  readonly idle: number
  /** Milliseconds until the headers of a request are complete. Default 10,000. */
  readonly headers: number
  /** Milliseconds until a request is complete. Default 60,000. */
  readonly request: number
  /** Milliseconds in which a client may accept no data of its response. Default 60,000. */
  readonly reader: number
}

export interface HttpServer {
  readonly host: string
  readonly port: number
  /** URL of the server, without a path. */
  readonly url: string
  /** Stops accepting requests; those in progress have this many seconds to end. Default 0. */
  close(seconds?: number): Promise<void>
}

const defaultLimits: HttpLimits = {
  connections: 2048,
  bodies: 512 * 2 ** 20,
  idle: 5000,
  headers: 10_000,
  request: 60_000,
  reader: 60_000,
}
const largestHeaders = 16_384 // bytes
/**
 * Milliseconds that an idle connection with a key is kept: agents return after their tools have run, and a request on a
 * closed connection fails.
 */
const keptIdle = 75_000
const loopback: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "::1"])

/** Whether a server on this host is only reachable from this machine. */
export function isLoopback(host: string): boolean {
  return loopback.has(host)
}

/** Answers a request of a client, identified by address. */
export type Answer = (request: Request, client: string) => Promise<Response>

/**
 * Starts an HTTP server. All servers of this package use it, so that the cost of a client without a key is bounded in
 * the same way (guard.ts, connections.ts), and only requests that passed the checks are read further.
 *
 * @throws GigpoError `IO` if the address cannot be listened on, `BAD_ARGUMENT` for a wrong port, or for a non-loopback
 * address without a key
 */
export async function listen(answer: Answer, options: ListenOptions = {}): Promise<HttpServer> {
  const { host = "127.0.0.1", port = 0, names = [], keys, encodings = [] } = options
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new GigpoError("BAD_ARGUMENT", `port must be an integer from 0 to 65535, not ${port}.`)
  const limits = { ...defaultLimits, ...options.limits }
  if (!keys && !isLoopback(host))
    throw new GigpoError(
      "BAD_ARGUMENT",
      `A server on ${host} is reachable from other machines; set a key, or use host 127.0.0.1.`,
    )
  const server = createServer({
    maxHeaderSize: largestHeaders,
    headersTimeout: limits.headers,
    requestTimeout: limits.request,
    keepAliveTimeout: keptIdle,
    connectionsCheckingInterval: Math.min(limits.headers, limits.request) / 2,
  })
  const most = Math.min(limits.connections, connectionsFor())
  const connections = new Connections({ connections: most, ofAddress: Math.ceil(most / 2), idle: limits.idle })
  server.on("connection", (socket) => connections.add(socket))
  const bodies = new BodyBudget(limits.bodies, limits.bodies / 2, encodings)
  const running = new Set<Promise<void>>()
  server.on("request", (incoming, outgoing) => {
    const connection = connections.of(incoming.socket)
    if (!connection) return void incoming.socket.destroy()
    const { idle, reader } = limits
    const serving = { incoming, outgoing, connection, guard, answer, bodies, idle, reader }
    const work = connection.take(() => serve(serving)).finally(() => running.delete(work))
    running.add(work)
  })
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause) =>
      reject(
        new GigpoError("IO", `Cannot listen on ${host}:${port} (${cause.message}); try another port, or 0 for any.`, {
          cause,
        }),
      ),
    )
    server.listen(port, host, resolve)
  })
  const bound = (server.address() as AddressInfo).port
  const written = isIP(host) === 6 ? `[${host}]` : host
  const known = new Set([
    ...[written, "localhost", "127.0.0.1", "[::1]"].flatMap((name) => [
      `${name}:${bound}`,
      ...(bound === 80 ? [name] : []),
    ]),
    // Clients behind a proxy use the proxy's port or none.
    ...names.map((name) => name.toLowerCase()).flatMap((name) => [name, `${name}:${bound}`]),
  ])
  const guard: Guard = { names: known, everywhere: host === "0.0.0.0" || host === "::", keys }
  return {
    ...{ host, port: bound, url: `http://${written}:${bound}` },
    async close(seconds = 0) {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      server.closeIdleConnections()
      const late = new AbortController()
      const waited = wait(seconds * 1000, undefined, { signal: late.signal }).catch(() => {})
      await Promise.race([Promise.allSettled(running), waited])
      late.abort()
      server.closeAllConnections()
      await closed
    },
  }
}

interface Serving extends Pick<HttpLimits, "idle" | "reader"> {
  readonly incoming: IncomingMessage
  readonly outgoing: ServerResponse
  readonly connection: Connection
  readonly guard: Guard
  readonly bodies: BodyBudget
  readonly answer: Answer
}

async function serve(serving: Serving): Promise<void> {
  const { incoming, outgoing, connection, guard } = serving
  let url: string
  let proven: boolean
  try {
    ;({ url, proven } = pass(incoming, guard))
  } catch (error) {
    return await refuse(error, serving)
  }
  if (proven) connection.prove()
  const { answer, bodies, idle, reader } = serving
  const { body, release } = bodies.read(incoming, connection.client)
  const gone = new AbortController()
  outgoing.once("close", () => {
    gone.abort()
    release()
  })
  outgoing.once("error", () => gone.abort())
  let response: Response
  try {
    response = await answer(asRequest(incoming, url, body, gone.signal), connection.client)
  } catch (error) {
    const apiError = apiErrorOf(error)
    response = Response.json(apiError, { status: apiError.status, headers: refusalHeaders(apiError) })
  }
  if (incoming.method === "HEAD" || outgoing.destroyed) void response.body?.cancel().catch(() => {})
  if (outgoing.destroyed) return
  // Close the connection if the request body was not read, and after an error for a client without a key.
  connection.closing = !incoming.complete || (!proven && response.status >= 400)
  if (connection.closing) outgoing.setHeader("connection", "close")
  else if (!connection.proven)
    outgoing.setHeader("connection", "keep-alive").setHeader("keep-alive", `timeout=${Math.ceil(idle / 1000)}`)
  outgoing.writeHead(response.status, { ...Object.fromEntries(response.headers), "x-content-type-options": "nosniff" })
  if (incoming.method === "HEAD") outgoing.end()
  else await write(response, outgoing, reader)
}

/**
 * Answers a rejected request and ends its connection. Creates no `Request`, `Response` or stream: these dominate the
 * cost of a short response, and anyone can send such requests.
 */
async function refuse(error: unknown, { incoming, outgoing, connection, reader }: Serving): Promise<void> {
  const apiError = apiErrorOf(error)
  connection.closing = true
  outgoing.once("error", () => {})
  outgoing.writeHead(apiError.status, {
    ...{ "content-type": "application/json", connection: "close", "x-content-type-options": "nosniff" },
    ...refusalHeaders(apiError),
  })
  await writeText(incoming.method === "HEAD" ? undefined : JSON.stringify(apiError), outgoing, reader)
}

function apiErrorOf(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(400, "The request cannot be read.")
}

function refusalHeaders({ status }: ApiError): Record<string, string> {
  return { "cache-control": "no-store", ...(status === 401 && { "www-authenticate": "Bearer" }) }
}

function asRequest(incoming: IncomingMessage, url: string, bytes: AsyncIterable<Buffer>, signal: AbortSignal): Request {
  const { method = "GET" } = incoming
  const headers = new Headers()
  for (const [name, value] of Object.entries(incoming.headers)) if (typeof value === "string") headers.set(name, value)
  if (isDecoded(incoming)) for (const name of ["content-encoding", "content-length"]) headers.delete(name)
  const empty = method === "GET" || method === "HEAD"
  const body = empty ? null : streamOf(bytes)
  return new Request(url, { method, headers, signal, body, ...(body && { duplex: "half" }) })
}
