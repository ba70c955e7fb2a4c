import { Pace, type Pieces } from "../util/pace.ts"
import { ApiError } from "./api-error.ts"

/** Bytes that are decoded between two points at which decoding can pause. */
const bytesPerPiece = 2 ** 17

/**
 * Reads the bytes of a request's body. A body that is too long is not read to its end.
 *
 * @param options.count - called with the bytes of each chunk before it is stored; may throw an ApiError. Default: no-op.
 * @param options.pace - pace of the request's work. Default: that of work for no client
 * @throws ApiError 413 above `most` bytes, 400 if the request breaks off
 */
export async function readBytes(
  request: Request,
  most: number,
  { count = () => {}, pace = new Pace() }: { readonly count?: (bytes: number) => void; readonly pace?: Pace } = {},
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
  return await joined(chunks, length, pace)
}

/** `Buffer.concat` in short pieces of work: for 16 MiB it takes 70 ms, most of them for pages that are new to the process. */
async function joined(chunks: readonly Uint8Array[], length: number, pace: Pace): Promise<Buffer> {
  const all = Buffer.allocUnsafe(length)
  let at = 0
  for (const chunk of chunks) {
    all.set(chunk, at)
    at += chunk.length
    if (pace.due()) await pace.rest()
  }
  return all
}

/**
 * @throws ApiError 415 if the body is not declared as JSON: web pages can send other types without a preflight request.
 */
export function checkJson(request: Request): void {
  if (!/^application\/json\b/i.test(request.headers.get("content-type") ?? ""))
    throw new ApiError(415, "Send JSON with content-type: application/json.")
}

/**
 * Text of a body, decoded in short pieces of work. A leading byte order mark is skipped, as RFC 8259 allows.
 *
 * @throws ApiError 400 if the body is not UTF-8
 */
export function* bodyText(bytes: Uint8Array): Pieces<string> {
  const parts: string[] = []
  for (let from = 0, ignoreBOM = false; from < bytes.length; ignoreBOM = true) {
    let end = Math.min(from + bytesPerPiece, bytes.length)
    while (end < bytes.length && (bytes[end]! & 0xc0) === 0x80) end++ // keep the bytes of a character together
    try {
      parts.push(new TextDecoder("utf-8", { fatal: true, ignoreBOM }).decode(bytes.subarray(from, end)))
    } catch {
      throw new ApiError(400, "The request is not UTF-8.")
    }
    from = end
    yield
  }
  return parts.join("")
}
