import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { createGzip } from "node:zlib"
import { GigpoError } from "../../errors.ts"
import { ApiError } from "../../server/api-error.ts"
import type { Source } from "../data/source.ts"
import { jsonPieces } from "./json-pieces.ts"

/**
 * Answers what the page asks of its source: `runs`, `runs/<id>/reports`, `runs/<id>/episodes` (both take `?cursor=`) and
 * `runs/<id>/episodes/<iteration>/<group>`.
 *
 * @param path - behind /api/, as it was sent: what is encoded in it is no name of anything.
 * @throws ApiError 404
 */
export async function answerApi(source: Source, path: string, request: Request): Promise<Response> {
  const cursor = new URL(request.url).searchParams.get("cursor") ?? undefined
  const value = await known(async () => {
    if (path === "runs") return await source.runs()
    const [, run = "", what, iteration, group] =
      /^runs\/(\w+)\/(reports|episodes)(?:\/(\d{1,9})\/(\d{1,9}))?$/.exec(path) ?? []
    if (what === undefined) return undefined
    if (iteration === undefined) return await source[what as "reports" | "episodes"](run, cursor)
    return what === "episodes" ? await source.group(run, Number(iteration), Number(group)) : undefined
  })
  if (value === undefined) throw new ApiError(404, "There is nothing of that name here.")
  return packed(value, request)
}

/** What is asked of a run that is not there has no answer. */
async function known<Value>(ask: () => Promise<Value>): Promise<Value | undefined> {
  try {
    return await ask()
  } catch (error) {
    if (GigpoError.is(error) && error.code === "BAD_ARGUMENT") return undefined
    throw error
  }
}

/** As JSON, compressed on another thread for whoever takes that. */
function packed(value: unknown, request: Request): Response {
  const headers = { "content-type": "application/json", "cache-control": "no-store", vary: "accept-encoding" }
  const json = Readable.from(jsonPieces(value), { objectMode: false })
  const body = (stream: Readable) => Readable.toWeb(stream) as ReadableStream<Uint8Array>
  if (!/\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(request.headers.get("accept-encoding") ?? ""))
    return new Response(body(json), { headers })
  const gzip = createGzip({ level: 4 })
  void pipeline(json, gzip).catch(() => {}) // the client went away, which whoever writes to it sees
  return new Response(body(gzip), { headers: { ...headers, "content-encoding": "gzip" } })
}
