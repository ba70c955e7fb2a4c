import { linkAbort } from "../../util/linked-abort.ts"
import { type Attempts, withAttempts } from "../../util/with-attempts.ts"
import { BodyTooLong, readBody } from "../read-body.ts"
import { contentsOf } from "./corpus.ts"
import { type Passage, type Retriever, RetrieverFailure } from "./retriever.ts"
import { retrieverKey } from "./retriever-key.ts"

export interface HttpRetrieverOptions extends Attempts {
  /** `{"query": …}` as verl-agent's server takes it, or `{"queries": [ … ]}` as Search-R1's does. */
  readonly requestForm: "single" | "batch"
  /** Seconds for one attempt. */
  readonly timeout: number
}

/** HTTP statuses after which another attempt may succeed. */
const passing = new Set([500, 502, 503, 504])

class PassingFailure extends RetrieverFailure {}

/**
 * Client of a server with Search-R1's retrieval protocol. Connection errors, timeouts and the statuses 500, 502, 503 and 504 are
 * retried; other statuses and invalid responses are not.
 */
export function httpRetriever(url: string, options: HttpRetrieverOptions): Retriever {
  return {
    async retrieve(query, limit, signal) {
      const mayPass = (error: unknown) => error instanceof PassingFailure
      return await withAttempts(options, signal, () => ask(url, query, limit, options, signal), mayPass)
    },
  }
}

async function ask(
  url: string,
  query: string,
  limit: number,
  { requestForm, timeout }: HttpRetrieverOptions,
  signal: AbortSignal,
): Promise<Passage[]> {
  const attempt = new AbortController()
  const unlink = linkAbort(signal, attempt)
  let late = false
  const timer = setTimeout(() => {
    late = true
    attempt.abort()
  }, timeout * 1000)
  const address = nameOf(url)
  const key = retrieverKey(url)
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", ...(key !== undefined && { authorization: `Bearer ${key}` }) },
      body: JSON.stringify({
        ...(requestForm === "single" ? { query } : { queries: [query] }),
        topk: limit,
        return_scores: true,
      }),
      redirect: "manual", // queries must not be sent to another server
      signal: attempt.signal,
    })
    if (!response.ok) {
      await response.body?.cancel()
      const Failure = passing.has(response.status) ? PassingFailure : RetrieverFailure
      throw new Failure(`answered with HTTP status ${response.status}`, address)
    }
    return readAnswer(await readBody(response), limit, address)
  } catch (error) {
    if (error instanceof RetrieverFailure) throw error
    if (error instanceof BodyTooLong)
      throw new RetrieverFailure(`answered with ${error.message}`, address, undefined, error)
    if (late) throw new PassingFailure(`did not answer within ${timeout} s`, address, undefined, error)
    throw new PassingFailure("cannot be reached", address, innerReason(error), error)
  } finally {
    clearTimeout(timer)
    unlink()
  }
}

/** Address without its query string, which may contain a key. */
function nameOf(url: string): string {
  const { origin, pathname } = new URL(url)
  return origin + pathname
}

/** Reason of a failure; that of `fetch` is in the error's `cause`. */
function innerReason(error: unknown): string {
  const { message, cause } = error as Error & { cause?: Partial<NodeJS.ErrnoException> }
  return cause?.code ?? cause?.message ?? message
}

/** Parses `{"result": [[item, …]]}`, each item a document or `{"document", "score"}`. */
function readAnswer(body: string, limit: number, address: string): Passage[] {
  let answer: { result?: unknown }
  try {
    answer = JSON.parse(body)
  } catch (cause) {
    throw new RetrieverFailure("answered with something that is not JSON", address, (cause as Error).message, cause)
  }
  const lists = answer?.result
  if (!Array.isArray(lists) || !lists.every(Array.isArray))
    throw new RetrieverFailure("answered with something that has no list of lists as its result", address)
  return (lists[0] ?? []).slice(0, limit).map((item) => readItem(item, address))
}

function readItem(item: { document?: unknown; score?: unknown } | null, address: string): Passage {
  const document = (item?.document ?? item) as Record<string, unknown> | null
  const contents = typeof document === "object" && document !== null ? contentsOf(document) : undefined
  if (contents === undefined) throw new RetrieverFailure("answered with a document without contents", address)
  return { id: String(document?.id ?? ""), contents, score: typeof item?.score === "number" ? item.score : 0 }
}
