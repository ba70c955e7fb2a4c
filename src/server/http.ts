import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { type AddressInfo, isIP } from "node:net"
import { Readable } from "node:stream"
import { setImmediate, setTimeout as wait } from "node:timers/promises"
import { GigpoError } from "../errors.ts"
import { ApiError } from "./api-error.ts"

export interface HttpOptions {
  /** Default 127.0.0.1: this machine alone. */
  readonly host?: string | undefined
  /** Default 0: any that is free. */
  readonly port?: number | undefined
  /** More names under which clients may call it, besides `host` and those of this machine for itself: a proxy's, say. */
  readonly names?: readonly string[] | undefined
  /** Whether `answer` lets nobody in without a key. Default false: then nobody beyond this machine may call. */
  readonly keyed?: boolean | undefined
  readonly limits?: Partial<HttpLimits> | undefined
}

export interface HttpLimits {
  /** At once. Default 1024. */
  readonly connections: number
  /** Milliseconds until the headers of a request are there. Default 10,000. */
  readonly headers: number
  /** Milliseconds until all of a request is there. Default 60,000. */
  readonly request: number
  /** Milliseconds in which a client takes nothing of its answer. Default 60,000. */
  readonly reader: number
}

export interface HttpServer {
  readonly host: string
  readonly port: number
  /** Where it is, without a path. */
  readonly url: string
  /** Takes no more requests; those that run have so many seconds to end. Default 0. */
  close(seconds?: number): Promise<void>
}

const defaultLimits: HttpLimits = { connections: 1024, headers: 10_000, request: 60_000, reader: 60_000 }
const largestHeaders = 16_384 // bytes
/** Bytes of which a client must take some in time: one who takes a large answer steadily is not cut off. */
const slice = 65_536
/** Milliseconds that a connection is kept for another request: agents come back after their tools have run, and one closed then fails. */
const idle = 75_000
const loopback: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "::1"])

/**
 * Listens for what `answer` answers. Browsers are kept out, whatever page they show: a Host that is none of this server's is what DNS
 * rebinding looks like, and a foreign Origin a page that calls where it should not.
 *
 * @throws GigpoError `IO` where the address cannot be listened on, `BAD_ARGUMENT` where anybody beyond this machine could call it
 * without a key
 */
export async function listen(
  answer: (request: Request) => Promise<Response>,
  options: HttpOptions = {},
): Promise<HttpServer> {
  const { host = "127.0.0.1", port = 0, names = [], keyed = false } = options
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new GigpoError("BAD_ARGUMENT", `port must be a whole number from 0 to 65535, not ${port}.`)
  const limits = { ...defaultLimits, ...options.limits }
  if (!keyed && !loopback.has(host))
    throw new GigpoError("BAD_ARGUMENT", `Whoever reaches ${host} could call this server; give it a key, or 127.0.0.1.`)
  const everywhere = host === "0.0.0.0" || host === "::"
  const server = createServer({
    maxHeaderSize: largestHeaders,
    headersTimeout: limits.headers,
    requestTimeout: limits.request,
    keepAliveTimeout: idle,
    connectionsCheckingInterval: Math.min(limits.headers, limits.request) / 2,
  })
  server.maxConnections = limits.connections
  const running = new Set<Promise<void>>()
  server.on("request", (incoming, outgoing) => {
    const serving = { incoming, outgoing, known, everywhere, answer, slowestReader: limits.reader }
    const work = serve(serving).finally(() => running.delete(work))
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
    // A proxy before it is called by its own port, which clients do not name.
    ...names.map((name) => name.toLowerCase()).flatMap((name) => [name, `${name}:${bound}`]),
  ])
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

interface Serving {
  readonly incoming: IncomingMessage
  readonly outgoing: ServerResponse
  /** Hosts by which this server goes. */
  readonly known: ReadonlySet<string>
  readonly everywhere: boolean
  readonly answer: (request: Request) => Promise<Response>
  /** Milliseconds. */
  readonly slowestReader: number
}

async function serve({ incoming, outgoing, known, everywhere, answer, slowestReader }: Serving): Promise<void> {
  const gone = new AbortController()
  outgoing.once("close", () => gone.abort())
  outgoing.once("error", () => gone.abort())
  let response: Response
  try {
    const { host = "", origin } = incoming.headers
    // Which of the machine's addresses lead here is not known; one that is written as numbers is no name that could be rebound.
    if (!known.has(host.toLowerCase()) && !(everywhere && isAddress(host)))
      throw new ApiError(421, "This server does not go by that name (the Host header).")
    if (origin !== undefined && !known.has(origin.toLowerCase().replace(/^https?:\/\//, "")))
      throw new ApiError(403, "Pages of other origins may not call this server.")
    response = await answer(asRequest(incoming, host, gone.signal))
  } catch (error) {
    const told = error instanceof ApiError ? error : new ApiError(400, "The request cannot be read.")
    response = Response.json(told, { status: told.status })
  }
  if (outgoing.destroyed) return void response.body?.cancel().catch(() => {})
  // The connection of a request that was refused before it was read ends with the answer.
  if (!incoming.complete) outgoing.setHeader("connection", "close")
  outgoing.writeHead(response.status, { ...Object.fromEntries(response.headers), "x-content-type-options": "nosniff" })
  await write(response, outgoing, slowestReader)
}

/** 192.0.2.7:8080, [2001:db8::7]:8080 */
function isAddress(host: string): boolean {
  const [, name = ""] = /^(?:\[(.*)\]|([^:]*))(?::\d+)?$/.exec(host)?.filter((part) => part !== undefined) ?? []
  return isIP(name) !== 0
}

function asRequest(incoming: IncomingMessage, host: string, signal: AbortSignal): Request {
  const { method = "GET", url = "/" } = incoming
  const headers = new Headers()
  for (const [name, value] of Object.entries(incoming.headers)) if (typeof value === "string") headers.set(name, value)
  const empty = method === "GET" || method === "HEAD"
  const body = empty ? null : (Readable.toWeb(incoming) as ReadableStream<Uint8Array>)
  return new Request(new URL(url, `http://${host}`), { method, headers, signal, body, ...(body && { duplex: "half" }) })
}

/** Asks for more of the body only when the operating system has what came before: its maker then knows what was delivered. */
async function write({ body }: Response, outgoing: ServerResponse, slowestReader: number): Promise<void> {
  try {
    for await (const chunk of body ?? []) {
      for (let from = 0; from < chunk.length && !outgoing.destroyed; from += slice)
        await flushed(outgoing, slowestReader, (done) => outgoing.write(chunk.subarray(from, from + slice), done))
      await setImmediate() // a body that always has more must not keep everybody else from their turn
      if (outgoing.destroyed) break // leaving the loop cancels the rest
    }
    await flushed(outgoing, slowestReader, (done) => outgoing.end(done))
  } catch {
    outgoing.destroy() // a stream that breaks off must not look whole
  }
}

/** Waits for what is written, or for the end of the connection, which is that of a client who takes nothing for so long. */
async function flushed(
  outgoing: ServerResponse,
  milliseconds: number,
  send: (done: () => void) => void,
): Promise<void> {
  if (outgoing.destroyed) return
  const slow = setTimeout(() => outgoing.destroy(), milliseconds)
  await new Promise<void>((resolve) => {
    outgoing.once("close", resolve)
    send(() => {
      outgoing.off("close", resolve)
      resolve()
    })
  })
  clearTimeout(slow)
}
