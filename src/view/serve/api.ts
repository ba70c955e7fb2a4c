import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { createGzip } from "node:zlib"
import { ApiError } from "../../chat/api-error.ts"
import { GigpoError } from "../../util/errors.ts"
import type { Source } from "../data/source.ts"
import { jsonPieces } from "./json-pieces.ts"

/**
 * Answers requests of the page: `runs`, `runs/<id>/reports`, `runs/<id>/episodes` (both with `?cursor=`) and
 * `runs/<id>/episodes/<iteration>/<group>`.
 *
 * @param path - path after /api/, not decoded
 * @param take - runs work in the turn of the client
 * @throws ApiError 404
 */
export async function answerApi(source: Source, path: string, request: Request, take: Take): Promise<Response> {
  const cursor = new URL(request.url).searchParams.get("cursor") ?? undefined
  const value = await take(() =>
    known(async () => {
      request.signal.throwIfAborted() // the client may have disconnected while waiting
      if (path === "runs") return await source.runs()
      const [, run = "", what, iteration, group] =
        /^runs\/(\w+)\/(reports|episodes)(?:\/(\d{1,9})\/(\d{1,9}))?$/.exec(path) ?? []
      if (what === undefined) return undefined
      if (iteration === undefined) return await source[what as "reports" | "episodes"](run, cursor)
      return what === "episodes" ? await source.group(run, Number(iteration), Number(group)) : undefined
    }),
  )
  if (value === undefined) throw new ApiError(404, "This file does not exist.")
  return packed(value, request, take)
}

/** Function that runs a piece of work in the turn of the client. */
type Take = <T>(work: () => Promise<T>) => Promise<T>

/** Makes each piece in the turn of the client. Between two pieces, other clients have their turn. */
async function* inTurns(pieces: AsyncIterator<string>, take: Take): AsyncGenerator<string> {
  for (;;) {
    const { done, value } = await take(() => pieces.next())
    if (done) return
    yield value
  }
}

/** Result of a request, or undefined if the run does not exist. */
async function known<Value>(ask: () => Promise<Value>): Promise<Value | undefined> {
  try {
    return await ask()
  } catch (error) {
    if (GigpoError.is(error) && error.code === "BAD_ARGUMENT") return undefined
    throw error
  }
}

/** JSON response, compressed on another thread if the client accepts gzip. */
function packed(value: unknown, request: Request, take: Take): Response {
  const headers = { "content-type": "application/json", "cache-control": "no-store", vary: "accept-encoding" }
  const json = Readable.from(inTurns(jsonPieces(value), take), { objectMode: false })
  const body = (stream: Readable) => Readable.toWeb(stream) as ReadableStream<Uint8Array>
  if (!/\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(request.headers.get("accept-encoding") ?? ""))
    return new Response(body(json), { headers })
  const gzip = createGzip({ level: 4 })
  void pipeline(json, gzip).catch(() => {}) // a disconnected client is noticed by the writer of the response
  return new Response(body(gzip), { headers: { ...headers, "content-encoding": "gzip" } })
}
