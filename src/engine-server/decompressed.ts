import { ApiError } from "../chat/api-error.ts"
import { mostBytes } from "../tinker/limits.ts"
import { decompress, TooMuch } from "../tinker/zstd/decompress.ts"
import { GigpoError } from "../util/errors.ts"
import { Pace } from "../util/pace.ts"

/** A body without its content-encoding; the event loop turns meanwhile. */
export async function decompressed(bytes: Uint8Array, encoding: string | null): Promise<Uint8Array> {
  if (encoding === null || encoding === "identity") return bytes
  if (encoding !== "zstd") throw new ApiError(415, `A call may be compressed by zstd, not by ${encoding.slice(0, 50)}.`)
  try {
    return await new Pace().through(decompress(bytes, mostBytes))
  } catch (error) {
    if (GigpoError.is(error)) throw new ApiError(error instanceof TooMuch ? 413 : 400, error.message)
    throw error
  }
}
