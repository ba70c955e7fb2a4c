import { brotliDecompressSync, gunzipSync } from "node:zlib"
import { GigpoError } from "../../errors.ts"
import { unreadable } from "../unreadable.ts"

// Snappy is hyparquet's own.
const compressors = {
  GZIP: (input: Uint8Array) => gunzipSync(input),
  BROTLI: (input: Uint8Array) => brotliDecompressSync(input),
}

/**
 * The rows of a Parquet file as plain objects, with those of the named columns that the file has.
 *
 * @throws BAD_DATA where the file cannot be read, and where it is no Parquet file or a broken one
 */
export async function* readParquetRows(
  path: string,
  wanted: readonly string[],
): AsyncGenerator<unknown, void, undefined> {
  // Loaded when it is needed: few runs read Parquet, and all would start later.
  const { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects, parquetSchema } = await import("hyparquet")
  const file = await asyncBufferFromFile(path).catch((cause: Error) => {
    throw unreadable(path, cause)
  })
  try {
    const metadata = await parquetMetadataAsync(file)
    const present = parquetSchema(metadata).children.map((child) => child.element.name)
    const columns = wanted.filter((name) => present.includes(name))
    let rowStart = 0
    for (const group of metadata.row_groups) {
      // Whole groups, because a part of one takes as long to read as what lies before it.
      const rowEnd = rowStart + Number(group.num_rows)
      yield* await parquetReadObjects({ file, metadata, columns, rowStart, rowEnd, compressors })
      rowStart = rowEnd
    }
  } catch (cause) {
    if (GigpoError.is(cause)) throw cause
    const reason = cause instanceof Error ? cause.message : cause
    throw new GigpoError("BAD_DATA", `${path} cannot be read as Parquet (${reason}); download or write it anew.`, {
      cause,
    })
  }
}
