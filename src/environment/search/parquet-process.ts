/** Message of the process: some rows, the end of the file, or a problem with the file. */
export type ParquetMessage =
  | { readonly rows: readonly unknown[] }
  | { readonly done: true }
  | { readonly problem: string }

/** Request to the process, as JSON in its first argument. */
export interface ParquetRequest {
  readonly path: string
  readonly wanted: readonly string[]
  /** URL of hyparquet. */
  readonly library: string
  /** URL of hyparquet's reader of pages. */
  readonly pages: string
  /** Maximum number of values and rows of the wanted columns. */
  readonly mostValues: number
  /** Maximum number of decompressed bytes of the wanted columns. */
  readonly mostBytes: number
  /** Maximum memory of the process in bytes. */
  readonly mostMemory: number
}

/**
 * Source of a process that reads a Parquet file; as a string, it runs the same from src and from dist. hyparquet trusts the counts in a
 * file: a run of a few bytes can stand for billions of values, and the second of two broken columns causes an unhandled rejection. So sizes
 * and counts are checked before hyparquet reads, and remaining failures end only this process.
 */
export const parquetSource: string = `
"use strict"
const zlib = process.getBuiltinModule("node:zlib")
const { path, wanted, library, pages, mostValues, mostBytes, mostMemory } = JSON.parse(process.argv[1])
const rowsOfMessage = 500
const compressors = {
  GZIP: (input, length) => zlib.gunzipSync(input, { maxOutputLength: Math.max(length, 1) }),
  BROTLI: (input, length) => zlib.brotliDecompressSync(input, { maxOutputLength: Math.max(length, 1) }),
}
const tell = (message) => new Promise((resolve) => process.send(message, () => resolve()))
process.on("unhandledRejection", () => {}) // of a second broken column, after the first was reported
// A separate thread ends this process when its parent has ended, or when it uses too much memory, including memory that V8 does not count.
const watch =
  "const { workerData: [parent, most] } = process.getBuiltinModule('node:worker_threads');" +
  "setInterval(() => { if (process.ppid !== parent || process.memoryUsage.rss() > most) process.kill(process.pid, 'SIGKILL') }, 20)"
const { Worker } = process.getBuiltinModule("node:worker_threads")
new Worker(watch, { eval: true, workerData: [process.ppid, mostMemory] }).unref()

const read = async () => {
  const { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects, parquetSchema } = await import(library)
  const { parquetHeader } = await import(pages)
  const file = await asyncBufferFromFile(path)
  const metadata = await parquetMetadataAsync(file)
  const present = parquetSchema(metadata).children.map((child) => child.element.name)
  const columns = wanted.filter((name) => present.includes(name))
  let [values, bytes, compressed] = [0, 0, 0]
  const count = (amount, most) => {
    if (!Number.isSafeInteger(amount) || amount < 0 || amount > most) throw new Error("it claims more than its size allows")
    return amount
  }
  /** Checks the headers of all pages of a column. */
  const check = async ({ meta_data: meta }) => {
    if (!meta || !columns.includes(meta.path_in_schema[0])) return
    const start = count(Number(meta.dictionary_page_offset || meta.data_page_offset), file.byteLength)
    const size = count(Number(meta.total_compressed_size), file.byteLength - start)
    compressed = count(compressed + size, file.byteLength)
    const reader = { view: new DataView(await file.slice(start, start + size)), offset: 0 }
    while (reader.offset < size - 1) {
      const header = parquetHeader(reader)
      const about = header.data_page_header ?? header.data_page_header_v2 ?? header.dictionary_page_header
      values = count(values + count(about?.num_values ?? 0, mostValues), mostValues)
      bytes = count(bytes + count(header.uncompressed_page_size, mostBytes), mostBytes)
      reader.offset += count(header.compressed_page_size, size - reader.offset)
    }
  }
  let rowStart = 0
  for (const group of metadata.row_groups) {
    const rows = count(Number(group.num_rows), mostValues)
    values = count(values + rows, mostValues)
    for (const column of group.columns) await check(column)
    // Whole row groups are read, because reading a part also decodes everything before it.
    const rowEnd = rowStart + rows
    const found = rows > 0 ? await parquetReadObjects({ file, metadata, columns, rowStart, rowEnd, compressors }) : []
    rowStart = rowEnd
    for (let at = 0; at < found.length; at += rowsOfMessage) await tell({ rows: found.slice(at, at + rowsOfMessage) })
  }
}

read()
  .then(() => tell({ done: true }), (error) => tell({ problem: String(error?.message ?? error) }))
  .finally(() => process.exit())
`
