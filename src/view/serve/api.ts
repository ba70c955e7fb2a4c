import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { createGzip } from "node:zlib"
import { ApiError } from "../../chat/api-error.ts"
import { GigpoError } from "../../util/errors.ts"
import type { Found, Source } from "../data/source.ts"
import { jsonPieces } from "./json-pieces.ts"
import { roundToSingle, sentGroup } from "./sent-group.ts"

/**
 * Answers requests of the page: `runs`, `runs/<id>/overview`, `runs/<id>/reports`, `runs/<id>/episodes` (both with
 * `?cursor=`), `runs/<id>/episodes/<iteration>/<group>` (with `?members=`, whose tokens are needed) and `runs/<id>/search?text=&before=`. An id followed by "~evaluation" stands for the
 * evaluation episodes of the run.
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
        /^runs\/(\w+(?:~evaluation)?)\/(overview|reports|episodes|search)(?:\/(\d{1,9})\/(\d{1,9}))?$/.exec(path) ?? []
      if (what === undefined) return undefined
      if (what === "search") return await searched(source, run, new URL(request.url).searchParams)
      if (what === "overview") return iteration === undefined ? await source.overview(run) : undefined
      if (iteration === undefined) return await source[what as "reports" | "episodes"](run, cursor)
      const given = new URL(request.url).searchParams.get("members")
      const members = given?.split(",").filter(Boolean).map(Number)
      const found = what === "episodes" ? await source.group(run, Number(iteration), Number(group), members) : undefined
      return found && (await sentGroup(found, { round: roundToSingle, members: members && new Set(members) }))
    }),
  )
  if (value === undefined) throw new ApiError(404, "This file does not exist.")
  return packed(value, request, take)
}

async function searched(source: Source, run: string, words: URLSearchParams): Promise<Found | undefined> {
  const [text, before] = [words.get("text") ?? "", words.get("before")]
  if (text === "" || (before !== null && !/^\d{1,15}$/.test(before))) return undefined
  return await source.search(run, text, before === null ? undefined : Number(before))
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
  if (!takesGzip(request)) return new Response(body(json), { headers })
  const gzip = createGzip({ level: 4 })
  void pipeline(json, gzip).catch(() => {}) // a disconnected client is noticed by the writer of the response
  return new Response(body(gzip), { headers: { ...headers, "content-encoding": "gzip" } })
}

/** Whether a client accepts gzip. */
export function takesGzip({ headers }: Request): boolean {
  return /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(headers.get("accept-encoding") ?? "")
}
