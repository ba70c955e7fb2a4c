import { ApiError } from "../chat/api-error.ts"
import { jsonProblem, mostNesting } from "../chat/json-limits.ts"
import { bodyText, checkJson } from "../http/body.ts"
import { JsonExcess, readJsonInPieces } from "../json/pieces.ts"
import { type JsonLimits, jsonExcess } from "../tinker/bounded-json.ts"
import type { Received } from "./paths.ts"

/** Maximum bytes of a body that is parsed in a single call, which takes some milliseconds and is faster than pieces. */
const short = 2 ** 18

/** Parses the JSON of a body, a long one in short pieces. Throws `ApiError` 400. */
export async function readJson(bytes: Uint8Array, { request, pace }: Received, limits: JsonLimits): Promise<unknown> {
  checkJson(request)
  const text = await pace.through(bodyText(bytes))
  const problem =
    (bytes.length <= short ? jsonProblem(text) : undefined) ?? (await pace.through(jsonExcess(text, limits)))
  if (problem !== undefined) throw new ApiError(400, `The request ${problem}.`)
  try {
    if (bytes.length <= short) return JSON.parse(text)
    return await pace.through(readJsonInPieces(text, () => {}, mostNesting))
  } catch (error) {
    throw new ApiError(400, error instanceof JsonExcess ? `The request ${error.message}.` : "The request is not JSON.")
  }
}
