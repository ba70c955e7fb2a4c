import { ApiError } from "../chat/api-error.ts"
import { mostBytes } from "../tinker/limits.ts"
import { decompress, TooMuch } from "../tinker/zstd/decompress.ts"
import { GigpoError } from "../util/errors.ts"
import type { Pace } from "../util/pace.ts"

/** Decodes the content-encoding of a body in short pieces. Throws `ApiError` 400, 413 and 415. */
export async function decompressed(bytes: Uint8Array, encoding: string | null, pace: Pace): Promise<Uint8Array> {
  if (encoding === null || encoding === "identity") return bytes
  if (encoding !== "zstd")
    throw new ApiError(415, `The content-encoding ${encoding.slice(0, 50)} is not supported; use zstd or none.`)
  try {
    return await pace.through(decompress(bytes, mostBytes))
  } catch (error) {
    if (GigpoError.is(error)) throw new ApiError(error instanceof TooMuch ? 413 : 400, error.message)
    throw error
  }
}
