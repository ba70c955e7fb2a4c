import { ApiError } from "../../http/api-error.ts"
import { bodyText, checkJson, readBytes } from "../../http/body.ts"
import { JsonExcess, type Nesting, readJsonInPieces } from "../../json/pieces.ts"
import { Pace } from "../../util/pace.ts"

/** What a request to a retrieval server asks for. */
export interface RetrievalRequest {
  readonly queries: readonly string[]
  /** Passages of each query. */
  readonly limit: number
  readonly scores: boolean
}

/** Bytes of a request. */
const longestBody = 2 ** 20
/** Characters of a query. */
const longestQuery = 32_768
const mostQueries = 1024
/** Passages of all queries together. */
const mostResults = 10_000
export const mostPassages = 1000
/** Structure of a request: an object with a list, and room for fields of other clients. */
const nesting: Nesting = { deepest: 32, mostParts: 2 * mostQueries }

/**
 * Text of the body of `POST /retrieve`.
 *
 * @throws ApiError 400, 404, 405, 413 or 415
 */
export async function readRetrieval(request: Request): Promise<string> {
  if (new URL(request.url).pathname !== "/retrieve") throw new ApiError(404, "There is only POST /retrieve.")
  if (request.method !== "POST") throw new ApiError(405, "Use POST.")
  checkJson(request)
  return bodyText(await readBytes(request, longestBody))
}

/**
 * What a body of Search-R1's protocol asks for. It is parsed in stretches, between which other requests are answered.
 *
 * @param topk passages where the request does not say how many
 * @throws ApiError 400
 */
export async function parseRetrieval(body: string, topk: number, signal: AbortSignal): Promise<RetrievalRequest> {
  const fields = await parseObject(body, signal)
  const { query, queries = typeof query === "string" ? [query] : undefined, return_scores: scores = false } = fields
  if (!Array.isArray(queries) || !queries.every((one) => typeof one === "string"))
    throw new ApiError(400, 'Give the text "query" or the list of texts "queries".')
  if (queries.length > mostQueries) throw new ApiError(400, `A request may have ${mostQueries} queries.`)
  if (queries.some((one) => one.length > longestQuery))
    throw new ApiError(400, `A query may have ${longestQuery} characters.`)
  const asked = fields.topk ?? 0
  if (!isPassageCount(asked))
    throw new ApiError(400, `"topk" must be a whole number from 0 to ${mostPassages}, or null.`)
  if (typeof scores !== "boolean") throw new ApiError(400, '"return_scores" must be true or false.')
  const limit = asked || topk
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
