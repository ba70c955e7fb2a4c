import { writeFile } from "node:fs/promises"
import { basename, join } from "node:path"
import { type Duplex, Readable, Transform } from "node:stream"
import { pipeline } from "node:stream/promises"
import { createGunzip } from "node:zlib"
import { translated } from "../../files/io-error.ts"
import { adapterFiles } from "../../model-files/adapter-files.ts"
import { GigpoError } from "../../util/errors.ts"
import type { Connection } from "./connection.ts"

/** Maximum number of files in an archive, including ignored ones. */
const mostFiles = 1000
/** Maximum bytes of an archive besides its files: headers, padding, long names. tar-stream keeps a header in memory until it is complete. */
const mostBeside = 2 ** 22

/** Options of `downloadAdapter`. */
export interface DownloadOptions {
  /** Maximum bytes of the unpacked archive. */
  readonly most: number
  readonly signal?: AbortSignal | undefined
}

/**
 * Downloads an adapter from the server's archive of sampler weights and writes it into a folder.
 *
 * @param path tinker://<model>/sampler_weights/<name>
 * @throws GigpoError `ENGINE_REJECTED` if the server has no archive, or the archive is larger than `most` or contains no adapter
 * in PEFT's layout; `ENGINE_LOST`, `IO`
 */
export async function downloadAdapter(
  connection: Connection,
  path: string,
  into: string,
  { most, signal }: DownloadOptions,
): Promise<void> {
  const found: string[] = []
  const missing = new Set(adapterFiles)
  const { extract } = await import("tar-stream") // rarely needed, and slow to load
  const unpacked = extract()
  let files = 0 // bytes of the files so far
  const passed = atMost(most, () => files)
  const reading = pipeline([...(await streamsOf(await openArchive(connection, path, signal))), passed, unpacked])
  reading.catch(() => {}) // the error also ends the loop below
  try {
    for await (const entry of unpacked) {
      const { type, size = 0 } = entry.header
      const name = basename(entry.header.name)
      if (found.push(name) > mostFiles) throw new Error(`it has more than ${mostFiles} files`)
      // tar-stream would wait for the end of a file without a valid size.
      if (!Number.isSafeInteger(size) || size < 0) throw new Error(`the size of ${name.slice(0, 100)} is invalid`)
      files += size
      if (type !== "file" || !adapterFiles.includes(name)) entry.resume()
      else if (!missing.delete(name)) throw new Error(`it contains ${name} twice`)
      else await translated(join(into, name), writeFile(join(into, name), entry))
    }
    await reading
  } catch (cause) {
    signal?.throwIfAborted()
    if (GigpoError.is(cause) && cause.code === "IO") throw cause
    throw noAdapter(path, `it cannot be read: ${cause instanceof Error ? cause.message : cause}`, cause)
  }
  if (missing.size > 0)
    throw noAdapter(
      path,
      `it contains ${found.join(", ").slice(0, 500) || "nothing"}, not ${adapterFiles.join(" and ")}`,
    )
}

function noAdapter(path: string, why: string, cause?: unknown): GigpoError {
  return new GigpoError("ENGINE_REJECTED", `The engine's archive of ${path} is not a valid adapter: ${why}.`, { cause })
}

/** Requests an archive. Some servers name a checkpoint with its kind, others without. */
async function openArchive(connection: Connection, path: string, signal?: AbortSignal): Promise<Response> {
  const [model = "", ...rest] = path
    .replace(/^tinker:\/\//, "")
    .split("/")
    .map(encodeURIComponent)
  const places = new Set([rest.join("/"), rest.at(-1)])
  const refusals: string[] = []
  for (const place of places) {
    const response = await connection.download(`/training_runs/${model}/checkpoints/${place}/archive`, signal)
    if (response.ok) return response
    refusals.push(`${response.status}: ${await beginning(response)}`)
    if (![404, 405, 422].includes(response.status)) break
  }
  throw new GigpoError("ENGINE_REJECTED", `The engine does not offer an archive of ${path} (${refusals.join(", ")}).`)
}

/** Reads the first 200 characters of a body. */
async function beginning(response: Response): Promise<string> {
  const pieces: Uint8Array[] = []
  let length = 0
  for await (const piece of response.body ?? []) {
    pieces.push(piece)
    length += piece.length
    if (length >= 200) break // ends the transfer
  }
  return Buffer.concat(pieces).toString("utf8").slice(0, 200)
}

/** Returns a stream that passes an archive through, and fails above `most` bytes, or `mostBeside` bytes besides its files. */
function atMost(most: number, filesSoFar: () => number): Transform {
  let length = 0
  return new Transform({
    transform(piece: Buffer, _, done) {
      const beside = length - filesSoFar() // without this piece, of which files may begin
      length += piece.length
      if (length > most) done(new Error(`it has more than ${most} bytes`))
      else if (beside > mostBeside) done(new Error(`it has more than ${mostBeside} bytes besides its files`))
      else done(null, piece)
    },
  })
}

/** Returns the streams that read an archive, with decompression if it is compressed with gzip. */
async function streamsOf(response: Response): Promise<readonly [Readable, ...Duplex[]]> {
  const body = response.body as AsyncIterable<Uint8Array> | null
  const pieces = (body ?? Readable.from([]))[Symbol.asyncIterator]()
  const first = await pieces.next()
  async function* all() {
    try {
      for (let piece = first; !piece.done; piece = await pieces.next()) yield piece.value
    } finally {
      await pieces.return?.() // ends the transfer of an archive that is not read to its end
    }
  }
  const isPacked = first.value?.[0] === 0x1f && first.value[1] === 0x8b
  return [Readable.from(all()), ...(isPacked ? [createGunzip()] : [])]
}
