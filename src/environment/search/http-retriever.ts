import { setTimeout as sleep } from "node:timers/promises"
import { contentsOf } from "./corpus.ts"
import { type Passage, type Retriever, RetrieverFailure } from "./retriever.ts"

export interface HttpRetrieverOptions {
  /** `{"query": …}` as verl-agent's server takes it, or `{"queries": [ … ]}` as Search-R1's does. */
  readonly requestForm: "single" | "batch"
  /** Seconds for one attempt. */
  readonly timeout: number
  /** Attempts in all. */
  readonly attempts: number
  /** Seconds before the second attempt; twice that before the third, and so on. */
  readonly delay: number
}

/** An answer that is larger is no answer. */
const longestAnswer = 16 * 2 ** 20

/** The failures that another attempt may mend. */
const passing = new Set([500, 502, 503, 504])

class PassingFailure extends RetrieverFailure {}

/**
 * A server that speaks Search-R1's retrieval protocol. Connection errors, time-outs and the statuses 500, 502, 503 and 504 are
 * tried again; other statuses and answers of a wrong form are not.
 */
export function httpRetriever(url: string, options: HttpRetrieverOptions): Retriever {
  return {
    async retrieve(query, limit, signal) {
      for (let attempt = 1; ; attempt++) {
        signal.throwIfAborted()
        try {
          return await ask(url, query, limit, options, signal)
        } catch (error) {
          signal.throwIfAborted()
          if (!(error instanceof PassingFailure) || attempt >= options.attempts) throw error
        }
        await sleep(options.delay * attempt * 1000, undefined, { signal }).catch(() => signal.throwIfAborted())
      }
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
  // Not AbortSignal.any: in Node 20 that leaves something behind on a long-lived signal every time.
  const attempt = new AbortController()
  const abort = () => attempt.abort()
  signal.addEventListener("abort", abort, { once: true })
  let late = false
  const timer = setTimeout(() => {
    late = true
    attempt.abort()
  }, timeout * 1000)
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        ...(requestForm === "single" ? { query } : { queries: [query] }),
        topk: limit,
        return_scores: true,
      }),
      signal: attempt.signal,
    })
    if (!response.ok) {
      await response.body?.cancel()
      const Failure = passing.has(response.status) ? PassingFailure : RetrieverFailure
      throw new Failure(`the retriever answered with HTTP status ${response.status}`)
    }
    return readAnswer(await readBody(response), limit)
  } catch (error) {
    if (error instanceof RetrieverFailure) throw error
    throw new PassingFailure(
      late ? `the retriever did not answer within ${timeout} s` : "the retriever cannot be reached",
    )
  } finally {
    clearTimeout(timer)
    signal.removeEventListener("abort", abort)
  }
}

async function readBody(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of response.body ?? []) {
    length += chunk.length
    if (length > longestAnswer)
      throw new RetrieverFailure(`the retriever answered with more than ${longestAnswer / 2 ** 20} MiB`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString("utf8")
}

/** `{"result": [[item, …]]}`, each item a document or `{"document", "score"}`. */
function readAnswer(body: string, limit: number): Passage[] {
  let answer: { result?: unknown }
  try {
    answer = JSON.parse(body)
  } catch {
    throw new RetrieverFailure("the retriever answered with something that is not JSON")
  }
  const lists = answer?.result
  if (!Array.isArray(lists) || !lists.every(Array.isArray))
    throw new RetrieverFailure("the retriever's answer has no list of lists as its result")
  return (lists[0] ?? []).slice(0, limit).map(readItem)
}

function readItem(item: { document?: unknown; score?: unknown } | null): Passage {
  const document = (item?.document ?? item) as Record<string, unknown> | null
  const contents = typeof document === "object" && document !== null ? contentsOf(document) : undefined
  if (contents === undefined) throw new RetrieverFailure("the retriever's answer has a document without contents")
  return { id: String(document?.id ?? ""), contents, score: typeof item?.score === "number" ? item.score : 0 }
}
