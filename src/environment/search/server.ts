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
  /** Corpus or other retriever to serve, e.g. `openCorpus(path)`. */
  readonly corpus: Retriever
  /** Address to listen on. Default 127.0.0.1, which only this machine can reach. Other addresses need a `key`. */
  readonly host?: string
  /** Port to listen on. Default 8000; 0 chooses a free port. */
  readonly port?: number
  /** Further host names under which clients may call the server, such as that of a proxy. */
  readonly names?: readonly string[]
  /** Key that clients must send as `Authorization: Bearer …`. Default: no key. */
  readonly key?: string
  /** Number of passages if a request gives none; 1 to 1000. Default 3. */
  readonly topk?: number
  /** Called with the error of a failed search. Clients only get a general message, because errors may contain paths. */
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

/** Maximum length of a response in characters: half of the 16 MiB that clients of this package read. */
const longestAnswer = 8 * 2 ** 20
/** Maximum number of clients whose requests are parsed or searched at the same time; others wait. */
const mostSearches = 8

/**
 * Serves a corpus by Search-R1's retrieval protocol: `POST /retrieve` with `query` or `queries`, `topk` and `return_scores` as JSON. Invalid
 * requests get a 4xx status and `{"error": …}`. Limits of a request: 1 MiB, 1,024 queries of 32,768 characters each, 10,000 passages
 * (queries × topk). Limit of a response: 8 Mi characters.
 *
 * @throws IO if the server cannot listen on the address, BAD_CONFIG for an invalid port or topk, BAD_ARGUMENT for an address that other
 * machines can reach without a key
 */
export async function serveRetriever(options: ServeRetrieverOptions): Promise<RetrieverServer> {
  checkArguments("serveRetriever", options, optionKeys)
  const { corpus, host = "127.0.0.1", port = 8000, topk = 3, names, key, onError, signal } = options
  if (typeof corpus?.retrieve !== "function")
    throw new GigpoError(
      "BAD_ARGUMENT",
      "serveRetriever needs a corpus: openCorpus(path), or another object with retrieve().",
    )
  if (!isPassageCount(topk) || topk === 0)
    throw new GigpoError("BAD_CONFIG", `topk must be an integer from 1 to ${mostPassages}, not ${topk}.`)
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new GigpoError("BAD_CONFIG", `port must be an integer from 0 to 65535, not ${port}.`)
  signal?.throwIfAborted()
  const searches = new FairQueue(mostSearches)
  const answer = async (request: Request, client: string): Promise<Response> => {
    try {
      const body = await readRetrieval(request)
      const retrieval = await searches.take(client, () => parseRetrieval(body, topk, request.signal))
      const find = async (query: string) =>
        await searches.take(client, () => corpus.retrieve(query, retrieval.limit, request.signal))
      return json(200, streamOf(inBytes(await search(retrieval, find, request.signal))))
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

/** JSON of the results of all queries, in parts. Yields to the event loop between queries and stops if the client has disconnected. */
async function search(
  retrieval: RetrievalRequest,
  find: (query: string) => Promise<readonly Passage[]>,
  signal: AbortSignal,
): Promise<string[]> {
  const results: string[] = []
  let length = 0
  for (const query of retrieval.queries) {
    signal.throwIfAborted()
    const passages = await find(query)
    length += passages.reduce((sum, { contents }) => sum + contents.length, 0)
    if (length > longestAnswer)
      throw new ApiError(
        400,
        `The passages have more than ${longestAnswer} characters; send fewer queries at once, or a smaller topk.`,
      )
    results.push(JSON.stringify(passages.map((passage) => formatPassage(passage, retrieval.scores))))
    await setImmediate()
  }
  return ['{"result":[', ...results.map((result, at) => (at > 0 ? `,${result}` : result)), "]}"]
}

/** Texts in UTF-8, each encoded when it is requested, so that a large response does not block the event loop. */
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
