import { ApiError } from "../../http/api-error.ts"
import { bodyText, checkJson, readBytes } from "../../http/body.ts"
import { JsonExcess, type Nesting, readJsonInPieces } from "../../json/pieces.ts"
import { Pace } from "../../util/pace.ts"

/** Parsed request to a retrieval server. */
export interface RetrievalRequest {
  readonly queries: readonly string[]
  /** Maximum number of passages per query. */
  readonly limit: number
  /** Whether the response contains scores. */
  readonly scores: boolean
}

/** Maximum size of a request in bytes. */
const longestBody = 2 ** 20
/** Maximum length of a query in characters. */
const longestQuery = 32_768
const mostQueries = 1024
/** Maximum number of passages of all queries together. */
const mostResults = 10_000
export const mostPassages = 1000
/** Limits of the JSON structure of a request, which leave room for fields of other clients. */
const nesting: Nesting = { deepest: 32, mostParts: 2 * mostQueries }

/**
 * Reads the body of `POST /retrieve` as text.
 *
 * @throws ApiError 400, 404, 405, 413 or 415
 */
export async function readRetrieval(request: Request): Promise<string> {
  if (new URL(request.url).pathname !== "/retrieve") throw new ApiError(404, "There is only POST /retrieve.")
  if (request.method !== "POST") throw new ApiError(405, "Use POST.")
  checkJson(request)
  return await new Pace().through(bodyText(await readBytes(request, longestBody)))
}

/**
 * Parses a body of Search-R1's protocol, in pieces, between which other requests are answered.
 *
 * @param topk - number of passages if the request gives none
 * @throws ApiError 400
 */
export async function parseRetrieval(body: string, topk: number, signal: AbortSignal): Promise<RetrievalRequest> {
  const fields = await parseObject(body, signal)
  const { query, queries = typeof query === "string" ? [query] : undefined, return_scores: scores = false } = fields
  if (!Array.isArray(queries) || !queries.every((one) => typeof one === "string"))
    throw new ApiError(400, 'Give "query", a string, or "queries", a list of strings.')
  if (queries.length > mostQueries) throw new ApiError(400, `A request may have at most ${mostQueries} queries.`)
  if (queries.some((one) => one.length > longestQuery))
    throw new ApiError(400, `A query may have at most ${longestQuery} characters.`)
  const requestedCount = fields.topk ?? 0
  if (!isPassageCount(requestedCount))
    throw new ApiError(400, `"topk" must be an integer from 0 to ${mostPassages}, or null.`)
  if (typeof scores !== "boolean") throw new ApiError(400, '"return_scores" must be true or false.')
  const limit = requestedCount || topk
  if (queries.length * limit > mostResults)
    throw new ApiError(
      400,
      `${queries.length} queries with ${limit} passages each are more than ${mostResults} passages; send fewer at once.`,
    )
  return { queries, limit, scores }
}

export function isPassageCount(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= mostPassages
}

async function parseObject(body: string, signal: AbortSignal): Promise<Record<string, unknown>> {
  let value: unknown
  try {
    value = await new Pace(signal).through(readJsonInPieces(body, () => {}, nesting))
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    throw new ApiError(400, error instanceof JsonExcess ? `The request ${error.message}.` : "The request is not JSON.")
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  throw new ApiError(400, "The request must be a JSON object.")
}
