import { ApiError } from "./api-error.ts"

/**
 * Reads the bytes of a request's body. A body that is too long is not read to its end.
 *
 * @param count - called with the bytes of each chunk before it is stored; may throw an ApiError. Default: no-op.
 * @throws ApiError 413 above `most` bytes, 400 if the request breaks off
 */
export async function readBytes(
  request: Request,
  most: number,
  count: (bytes: number) => void = () => {},
): Promise<Buffer> {
  const tooLong = () => new ApiError(413, `The request is too long; the maximum is ${most} bytes.`)
  if (Number(request.headers.get("content-length")) > most) throw tooLong()
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    for await (const chunk of request.body ?? []) {
      length += chunk.length
      if (length > most) throw tooLong()
      count(chunk.length)
      chunks.push(chunk)
    }
  } catch (error) {
    throw error instanceof ApiError ? error : new ApiError(400, "The request broke off.")
  }
  return Buffer.concat(chunks)
}

/**
 * @throws ApiError 415 if the body is not declared as JSON: web pages can send other types without a preflight request.
 */
export function checkJson(request: Request): void {
  if (!/^application\/json\b/i.test(request.headers.get("content-type") ?? ""))
    throw new ApiError(415, "Send JSON with content-type: application/json.")
}

/**
 * Text of a body. A leading byte order mark is skipped, as RFC 8259 allows.
 *
 * @throws ApiError 400 if the body is not UTF-8
 */
export function bodyText(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes)
  } catch {
    throw new ApiError(400, "The request is not UTF-8.")
  }
}
