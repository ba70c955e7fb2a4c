import { createHash } from "node:crypto"
import { ApiError } from "../chat/api-error.ts"
import { mostNesting } from "../chat/json-limits.ts"
import { bodyText, checkJson, readBytes } from "../http/body.ts"
import { JsonExcess } from "../json/pieces.ts"
import { parseJsonInPieces } from "../json/text.ts"
import { Pace, type Pieces } from "../util/pace.ts"

/** Maximum bytes of a body for any model. */
const longestBody = 32 * 2 ** 20
/**
 * Bytes of a body beyond what the model's positions can hold, for parts outside the prompt such as schemas and
 * metadata.
 */
const beside = 2 ** 20
/** Bytes per position. A token has about four characters in most languages; JSON escapes some characters with six. */
const bytesPerPosition = 16
/** Bytes between two points at which the digest can pause. */
const bytesPerPiece = 2 ** 18

export interface Body {
  readonly value: unknown
  /** Equal for equal bytes. */
  readonly digest: string
}

/**
 * Reads the bytes of a JSON request.
 *
 * @param positions - positions of the model, which limit the length. Default: no such limit
 * @param pace - pace of the request's work. Default: that of work for no client
 * @throws ApiError 413 for a body that is too long, 415 if the content type is not JSON
 */
export async function readBody(
  request: Request,
  positions = Number.POSITIVE_INFINITY,
  pace = new Pace(),
): Promise<Buffer> {
  checkJson(request)
  return await readBytes(request, Math.min(longestBody, bytesPerPosition * positions + beside), { pace })
}

/**
 * Parses the JSON of a request in short pieces of work.
 *
 * @throws ApiError 400
 */
export function* parseBody(bytes: Buffer): Pieces<Body> {
  const text = yield* bodyText(bytes)
  const digest = createHash("sha256")
  for (let at = 0; at < bytes.length; at += bytesPerPiece) {
    digest.update(bytes.subarray(at, at + bytesPerPiece))
    yield
  }
  try {
    const value = yield* parseJsonInPieces(text, mostNesting)
    return { value, digest: digest.digest("base64url") }
  } catch (error) {
    throw new ApiError(400, error instanceof JsonExcess ? `The request ${error.message}.` : "The request is not JSON.")
  }
}
