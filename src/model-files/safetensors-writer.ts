import { type FileHandle, open, rm } from "node:fs/promises"
import { join } from "node:path"
import { io } from "../files/io-error.ts"
import { GigpoError } from "../util/errors.ts"
import { quote } from "./strict-json.ts"

/** Tensor to be written. The bytes are requested only when they are written, so that a model is never in memory twice. */
export interface TensorSource {
  readonly name: string
  readonly dtype: "F32" | "BF16"
  readonly shape: readonly number[]
  /** Bytes in order, little-endian, in chunks of any size. The buffer of a chunk may be reused after the next one is requested. */
  readonly chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>
}

/** Metadata that loaders of PyTorch models require. */
const pytorch: Readonly<Record<string, string>> = { format: "pt" }

/**
 * Writes one safetensors file and flushes it to disk. An existing file is never replaced. An incomplete file is removed.
 *
 * @param metadata - free text for the header; default `{ format: "pt" }`.
 * @throws GigpoError `BAD_ARGUMENT` for invalid names or shapes, and for bytes that do not fit the shape; `IO`
 */
export async function writeSafetensors(
  path: string,
  tensors: Iterable<TensorSource>,
  metadata: Readonly<Record<string, string>> = pytorch,
): Promise<void> {
  // Wider elements first, as the reference implementation does, so that every tensor is aligned to its elements.
  const sources = [...tensors].sort((a, b) => elementBytes(b) - elementBytes(a))
  const header = encodeHeader(sources, metadata)
  const handle = await io("create", path, open(path, "wx"))
  try {
    await writeFully(handle, path, header)
    for (const source of sources) await writeTensor(handle, path, source)
    await io("flush", path, handle.sync())
    await io("close", path, handle.close())
  } catch (error) {
    await handle.close().catch(() => {})
    await rm(path, { force: true }).catch(() => {})
    throw error
  }
}

/**
 * Writes the tensors of a model into a folder: one `model.safetensors`, or above `maxFileBytes` bytes (default 5e9) several files
 * `model-00001-of-0000N.safetensors` with a `model.safetensors.index.json`. The folder itself is not flushed to disk: use
 * `writeDirectory` for that.
 *
 * @returns names of the files
 */
export async function writeShardedSafetensors(
  directory: string,
  tensors: Iterable<TensorSource>,
  options: { readonly maxFileBytes?: number; readonly metadata?: Readonly<Record<string, string>> } = {},
): Promise<string[]> {
  const { maxFileBytes = 5e9, metadata = pytorch } = options
  const sources = [...tensors]
  checkSources(sources)
  const shards: TensorSource[][] = [[]]
  let filled = 0
  for (const source of sources) {
    const bytes = tensorBytes(source)
    if (filled > 0 && filled + bytes > maxFileBytes) {
      shards.push([])
      filled = 0
    }
    shards.at(-1)!.push(source)
    filled += bytes
  }
  if (shards.length === 1) {
    await writeSafetensors(join(directory, "model.safetensors"), sources, metadata)
    return ["model.safetensors"]
  }

  const five = (n: number): string => String(n).padStart(5, "0")
  const names = shards.map((_, i) => `model-${five(i + 1)}-of-${five(shards.length)}.safetensors`)
  for (const [i, shard] of shards.entries()) await writeSafetensors(join(directory, names[i]!), shard, metadata)
  const index = {
    metadata: { total_size: sources.reduce((sum, source) => sum + tensorBytes(source), 0) },
    weight_map: Object.fromEntries(shards.flatMap((shard, i) => shard.map(({ name }) => [name, names[i]]))),
  }
  const path = join(directory, "model.safetensors.index.json")
  const handle = await io("create", path, open(path, "wx"))
  try {
    await writeFully(handle, path, new TextEncoder().encode(`${JSON.stringify(index, null, 2)}\n`))
    await io("flush", path, handle.sync())
  } finally {
    await handle.close()
  }
  return [...names, "model.safetensors.index.json"]
}

/** Returns the length and JSON of a header, padded with spaces so that the tensors begin at a multiple of 8 bytes. */
function encodeHeader(sources: readonly TensorSource[], metadata: Readonly<Record<string, string>>): Uint8Array {
  checkSources(sources)
  const fields = [`"__metadata__":${JSON.stringify(metadata)}`]
  let begin = 0
  for (const source of sources) {
    const end = begin + tensorBytes(source)
    const { name, dtype, shape } = source
    fields.push(`${JSON.stringify(name)}:${JSON.stringify({ dtype, shape, data_offsets: [begin, end] })}`)
    begin = end
  }
  const json = new TextEncoder().encode(`{${fields.join(",")}}`)
  const header = new Uint8Array(8 + Math.ceil(json.length / 8) * 8).fill(0x20)
  new DataView(header.buffer).setBigUint64(0, BigInt(header.length - 8), true)
  header.set(json, 8)
  return header
}

function checkSources(sources: readonly TensorSource[]): void {
  const names = new Set<string>()
  for (const { name, dtype, shape } of sources) {
    const fail = (what: string): GigpoError => new GigpoError("BAD_ARGUMENT", `Tensor ${quote(name)} ${what}.`)
    if (name === "__metadata__" || /\p{Surrogate}/u.test(name)) throw fail("has a name that safetensors does not allow")
    if (names.has(name)) throw fail("is given twice; names must differ")
    if (dtype !== "F32" && dtype !== "BF16") throw fail(`has dtype ${dtype}; F32 and BF16 can be written`)
    if (!shape.every((n) => Number.isSafeInteger(n) && n >= 0))
      throw fail("has a shape that is not a list of integers from 0")
    names.add(name)
  }
}

async function writeTensor(handle: FileHandle, path: string, source: TensorSource): Promise<void> {
  const expected = tensorBytes(source)
  let written = 0
  for await (const chunk of source.chunks) {
    written += chunk.length
    if (written > expected) break
    await writeFully(handle, path, chunk)
  }
  if (written === expected) return
  const gave = written > expected ? "more" : `only ${written}`
  const message = `Tensor ${quote(source.name)} of shape [${source.shape}] needs ${expected} bytes; its chunks have ${gave}.`
  throw new GigpoError("BAD_ARGUMENT", message)
}

/** Writes all bytes; a single write may accept fewer. */
async function writeFully(handle: FileHandle, path: string, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    done += (await io("write", path, handle.write(bytes, done, bytes.length - done))).bytesWritten
  }
}

function tensorBytes(source: TensorSource): number {
  return source.shape.reduce((product, n) => product * n, elementBytes(source))
}

function elementBytes(source: TensorSource): number {
  return source.dtype === "F32" ? 4 : 2
}
