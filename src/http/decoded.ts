import type { IncomingMessage } from "node:http"
import { pipeline, Readable } from "node:stream"
import { createGunzip } from "node:zlib"
import { ApiError } from "./api-error.ts"

/** Whether the content encoding of a request is one that `decoded` decodes. */
export function isDecoded(incoming: IncomingMessage): boolean {
  return encodingOf(incoming) === "gzip"
}

function encodingOf({ headers }: IncomingMessage): string {
  return headers["content-encoding"]?.trim().toLowerCase() || "identity"
}

/**
 * Bytes of a request's body without its content encoding: gzip, or none. What is decompressed ahead of the reader does
 * not depend on the body, so that limits apply to the bytes that come out.
 *
 * @param passed - encodings whose bytes are returned as they were sent
 * @throws ApiError while it is read: 415 for another encoding, 400 for a body that is not gzip
 */
export async function* decoded(incoming: IncomingMessage, passed: readonly string[]): AsyncGenerator<Buffer> {
  const body: AsyncIterable<Buffer> = incoming.iterator({ destroyOnReturn: false })
  const encoding = encodingOf(incoming)
  if (encoding === "identity" || passed.includes(encoding)) return yield* body
  if (!isDecoded(incoming)) throw new ApiError(415, "Send the body as it is, or with content-encoding: gzip.")
  const unzip = createGunzip()
  pipeline(Readable.from(body), unzip, () => {}) // errors are those of the iterator
  try {
    yield* unzip
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException
    throw code.startsWith("Z_") ? new ApiError(400, "The body is not valid gzip.") : error
  }
}
