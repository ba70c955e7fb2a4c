import { ApiError } from "./api-error.ts"

/**
 * Bytes of a request's body. A body that is too long is not read to its end.
 *
 * @param count - called with the bytes of each chunk before the chunk is kept; may throw an ApiError. Default: counts nothing.
 * @throws ApiError 413 above `most` bytes, 400 where the request breaks off
 */
export async function readBytes(
  request: Request,
  most: number,
  count: (bytes: number) => void = () => {},
): Promise<Buffer> {
  const tooLong = () => new ApiError(413, `A request may have ${most} bytes here; send a shorter one.`)
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

/** @throws ApiError 415 where a body is not declared as JSON: pages of browsers send other types without asking. */
export function checkJson(request: Request): void {
  if (!/^application\/json\b/i.test(request.headers.get("content-type") ?? ""))
    throw new ApiError(415, "Send JSON, as content-type: application/json.")
}

/**
 * Text of a body. A byte order mark at its beginning is passed over, as RFC 8259 allows readers of JSON.
 *
 * @throws ApiError 400 where it is no UTF-8
 */
export function bodyText(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes)
  } catch {
    throw new ApiError(400, "The request is not UTF-8.")
  }
}
