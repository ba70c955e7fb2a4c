import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { setImmediate } from "node:timers/promises"
import { GigpoError } from "../../errors.ts"
import { checkArguments, type KeysOf } from "../../options/arguments.ts"
import type { Passage, Retriever } from "./retriever.ts"

export interface ServeRetrieverOptions {
  /** What is searched: `openCorpus(path)`, or any other. */
  readonly corpus: Retriever
  /** Default 127.0.0.1: this machine alone. The server knows no passwords. */
  readonly host?: string
  /** Default 8000; 0 takes any that is free. */
  readonly port?: number
  /** Passages where a request does not say how many; 1 to 1000. Default 3. */
  readonly topk?: number
  /** Told why a search failed; the client hears no more than that one did, as reasons may name paths and the like. */
  readonly onError?: (error: unknown) => void
  /** Closes the server. */
  readonly signal?: AbortSignal
}

export interface RetrieverServer {
  /** Where requests go, e.g. `http://127.0.0.1:8000/retrieve`. */
  readonly url: string
  /** Ends running requests and frees the port. */
  close(): Promise<void>
}

const optionKeys: KeysOf<ServeRetrieverOptions> = {
  corpus: true,
  host: true,
  port: true,
  topk: true,
  onError: true,
  signal: true,
}

const longestBody = 2 ** 20
const mostPassages = 1000
const mostQueries = 1024

/**
 * Serves a corpus by Search-R1's retrieval protocol, in both of its forms: `POST /retrieve` with `query` or `queries`, `topk` and
 * `return_scores`. Requests that are wrong get a 4xx status and `{"error": …}`.
 *
 * @throws IO where the address cannot be listened on, BAD_CONFIG for a wrong port or topk
 */
export async function serveRetriever(options: ServeRetrieverOptions): Promise<RetrieverServer> {
  checkArguments("serveRetriever", options, optionKeys)
  const { corpus, host = "127.0.0.1", port = 8000, topk = 3, onError, signal } = options
  if (typeof corpus?.retrieve !== "function")
    throw new GigpoError(
      "BAD_ARGUMENT",
      "serveRetriever needs a corpus to search: openCorpus(path), or any with retrieve().",
    )
  if (!isCount(topk) || topk === 0)
    throw new GigpoError("BAD_CONFIG", `topk must be a whole number from 1 to ${mostPassages}, not ${topk}.`)
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new GigpoError("BAD_CONFIG", `port must be a whole number from 0 to 65535, not ${port}.`)
  signal?.throwIfAborted()
  const closing = new AbortController()
  const server = createServer(async (request, response) => {
    try {
      const { queries, limit, scores } = readRequest(request, await readBody(request), topk)
      const result: unknown[] = []
      for (const query of queries) {
        result.push(
          (await corpus.retrieve(query, limit, closing.signal)).map((passage) => formatPassage(passage, scores)),
        )
        await setImmediate() // a long list of queries must not keep other requests waiting
      }
      answer(response, 200, { result })
    } catch (error) {
      if (error instanceof Refusal) return answer(response, error.status, { error: error.message })
      answer(response, 500, { error: "The search failed." })
      if (!closing.signal.aborted) onError?.(error)
    }
  })
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause) =>
      reject(new GigpoError("IO", `Cannot listen on ${host}:${port} (${cause.message}); try another port.`, { cause })),
    )
    server.listen(port, host, resolve)
  })
  const close = () => {
    signal?.removeEventListener("abort", close)
    closing.abort()
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    server.closeAllConnections()
    return closed
  }
  signal?.addEventListener("abort", close, { once: true })
  if (signal?.aborted) await close()
  signal?.throwIfAborted()
  const { port: bound } = server.address() as AddressInfo
  return { url: `http://${host.includes(":") ? `[${host}]` : host}:${bound}/retrieve`, close }
}

/** A request that is wrong, and the HTTP status that says so. */
class Refusal extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

function readBody(request: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let length = 0
    request.on("data", (chunk: Buffer) => {
      length += chunk.length
      if (length <= longestBody) return chunks.push(chunk)
      request.pause()
      reject(new Refusal(413, `A request may have ${longestBody} bytes.`))
    })
    request.on("end", () => resolve(Buffer.concat(chunks).toString("utf8")))
    request.on("error", () => reject(new Refusal(400, "The request broke off.")))
  })
}

function readRequest({ method, url = "" }: IncomingMessage, body: string, topk: number) {
  if (url.split("?")[0] !== "/retrieve") throw new Refusal(404, "There is only POST /retrieve.")
  if (method !== "POST") throw new Refusal(405, "Use POST.")
  const fields = parseObject(body)
  const { query, queries = typeof query === "string" ? [query] : undefined, return_scores: scores = false } = fields
  if (!Array.isArray(queries) || !queries.every((one) => typeof one === "string"))
    throw new Refusal(400, 'Give the text "query" or the list of texts "queries".')
  if (queries.length > mostQueries) throw new Refusal(400, `A request may have ${mostQueries} queries.`)
  const limit = fields.topk ?? 0
  if (!isCount(limit)) throw new Refusal(400, `"topk" must be a whole number from 0 to ${mostPassages}, or null.`)
  if (typeof scores !== "boolean") throw new Refusal(400, '"return_scores" must be true or false.')
  return { queries: queries as string[], limit: limit || topk, scores }
}

function parseObject(body: string): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(body)
  } catch {
    throw new Refusal(400, "The request is not JSON.")
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  throw new Refusal(400, "The request must be a JSON object.")
}

function isCount(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= mostPassages
}

function formatPassage({ id, contents, score }: Passage, scores: boolean): unknown {
  const document = { id, contents }
  return scores ? { document, score } : document
}

function answer(response: ServerResponse, status: number, body: unknown): void {
  if (response.destroyed || response.headersSent) return
  // What is left of a body that was refused is not read; the connection ends with the answer.
  if (status === 413) response.setHeader("connection", "close")
  response.writeHead(status, { "content-type": "application/json" })
  response.end(JSON.stringify(body))
}
