import { setImmediate } from "node:timers/promises"
import { ApiError } from "../../http/api-error.ts"
import { FairQueue } from "../../http/fair-queue.ts"
import type { Keys } from "../../http/guard.ts"
import { isKey } from "../../http/key.ts"
import { listen } from "../../http/listen.ts"
import { streamOf } from "../../http/stream-of.ts"
import { checkArguments, type KeysOf } from "../../options/arguments.ts"
import { GigpoError } from "../../util/errors.ts"
import {
  isPassageCount,
  mostPassages,
  parseRetrieval,
  type RetrievalRequest,
  readRetrieval,
} from "./retrieval-request.ts"
import type { Passage, Retriever } from "./retriever.ts"

/** Options of `serveRetriever`. */
export interface ServeRetrieverOptions {
  /** What is searched: `openCorpus(path)`, or any other. */
  readonly corpus: Retriever
  /** Address to listen on. Default 127.0.0.1: this machine alone. Any other needs a `key`. */
  readonly host?: string
  /** Default 8000; 0 takes any that is free. */
  readonly port?: number
  /** More names under which clients may call the server: a proxy's, for example. */
  readonly names?: readonly string[]
  /** Key that clients must send as `Authorization: Bearer …`. Default: none is needed. */
  readonly key?: string
  /** Passages where a request does not say how many; 1 to 1000. Default 3. */
  readonly topk?: number
  /** Called with the reason of a search that failed; the client hears no more than that one did, as reasons may name paths. */
  readonly onError?: (error: unknown) => void
  /** Closes the server. */
  readonly signal?: AbortSignal
}

/** Running retrieval server. */
export interface RetrieverServer {
  /** Address of requests, e.g. `http://127.0.0.1:8000/retrieve`. */
  readonly url: string
  /** Ends running requests and frees the port. */
  close(): Promise<void>
}

const optionKeys: KeysOf<ServeRetrieverOptions> = {
  corpus: true,
  host: true,
  port: true,
  names: true,
  key: true,
  topk: true,
  onError: true,
  signal: true,
}

/** Characters of an answer: what clients of this package read (16 MiB), also where each takes two bytes. */
const longestAnswer = 8 * 2 ** 20
/** Clients whose requests are parsed or searched at the same time; the others wait. */
const mostSearches = 8

/**
 * Serves a corpus by Search-R1's retrieval protocol, in both of its forms: `POST /retrieve` with `query` or `queries`, `topk` and
 * `return_scores`, as JSON. Requests that are wrong get a 4xx status and `{"error": …}`. A request may have 1 MiB, 1,024 queries of 32,768
 * characters each and 10,000 passages (queries × topk), an answer 8 Mi characters.
 *
 * @throws IO where the address cannot be listened on, BAD_CONFIG for a wrong port or topk, BAD_ARGUMENT for an address that other machines
 * reach without a key
 */
export async function serveRetriever(options: ServeRetrieverOptions): Promise<RetrieverServer> {
  checkArguments("serveRetriever", options, optionKeys)
  const { corpus, host = "127.0.0.1", port = 8000, topk = 3, names, key, onError, signal } = options
  if (typeof corpus?.retrieve !== "function")
    throw new GigpoError(
      "BAD_ARGUMENT",
      "serveRetriever needs a corpus to search: openCorpus(path), or any with retrieve().",
    )
  if (!isPassageCount(topk) || topk === 0)
    throw new GigpoError("BAD_CONFIG", `topk must be a whole number from 1 to ${mostPassages}, not ${topk}.`)
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new GigpoError("BAD_CONFIG", `port must be a whole number from 0 to 65535, not ${port}.`)
  signal?.throwIfAborted()
  const searches = new FairQueue(mostSearches)
  const answer = async (request: Request, client: string): Promise<Response> => {
    try {
      const body = await readRetrieval(request)
      const asked = await searches.take(client, () => parseRetrieval(body, topk, request.signal))
      const find = async (query: string) =>
        await searches.take(client, () => corpus.retrieve(query, asked.limit, request.signal))
      return json(200, streamOf(inBytes(await search(asked, find, request.signal))))
    } catch (error) {
      if (error instanceof ApiError) return json(error.status, JSON.stringify({ error: error.message }))
      if (!request.signal.aborted) onError?.(error)
      return json(500, JSON.stringify({ error: "The search failed." }))
    }
  }
  const keys: Keys | undefined =
    key === undefined
      ? undefined
      : { known: (given) => isKey(given, key), refusal: "Send the key of this server as `Authorization: Bearer …`." }
  const server = await listen(answer, { host, port, names, keys })
  const close = () => {
    signal?.removeEventListener("abort", close)
    return server.close()
  }
  signal?.addEventListener("abort", close, { once: true })
  if (signal?.aborted) await close()
  signal?.throwIfAborted()
  return { url: `${server.url}/retrieve`, close }
}

/** JSON of what the queries find, in parts. The event loop turns between two queries, and nothing is searched for a client that is gone. */
async function search(
  asked: RetrievalRequest,
  find: (query: string) => Promise<readonly Passage[]>,
  signal: AbortSignal,
): Promise<string[]> {
  const results: string[] = []
  let length = 0
  for (const query of asked.queries) {
    signal.throwIfAborted()
    const passages = await find(query)
    length += passages.reduce((sum, { contents }) => sum + contents.length, 0)
    if (length > longestAnswer)
      throw new ApiError(
        400,
        `The passages have more than ${longestAnswer} characters; send fewer queries at once, or a smaller topk.`,
      )
    results.push(JSON.stringify(passages.map((passage) => formatPassage(passage, asked.scores))))
    await setImmediate()
  }
  return ['{"result":[', ...results.map((result, at) => (at > 0 ? `,${result}` : result)), "]}"]
}

/** Texts one after the other in UTF-8, each when it is asked for: a large answer is not encoded without a turn of the event loop. */
function* inBytes(texts: readonly string[]): Generator<Uint8Array> {
  const encoder = new TextEncoder()
  for (const text of texts) yield encoder.encode(text)
}

function formatPassage({ id, contents, score }: Passage, scores: boolean): unknown {
  const document = { id, contents }
  return scores ? { document, score } : document
}

function json(status: number, body: string | ReadableStream): Response {
  return new Response(body, { status, headers: { "content-type": "application/json" } })
}
