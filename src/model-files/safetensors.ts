import { readdir } from "node:fs/promises"
import { join } from "node:path"
import { ioError, isSystemError } from "../files/io-error.ts"
import { GigpoError } from "../util/errors.ts"
import type { ReadableGgufType } from "./gguf/types.ts"
import { type HeaderEntry, malformed, parseUntrusted } from "./safetensors-header.ts"
import { openShard, readFully, readSmallFile, type Shard } from "./safetensors-shard.ts"
import { quote } from "./strict-json.ts"

export interface TensorInfo {
  readonly dtype: ReadableGgufType
  readonly shape: readonly number[]
  readonly bytes: number
}

/** The tensors of a model folder, opened and checked. Only headers are in memory. */
export interface TensorFiles {
  /** In the order of their bytes, file by file. */
  readonly names: readonly string[]
  /** Free text of the headers. */
  readonly metadata: ReadonlyMap<string, string>
  /** Refuses (`BAD_MODEL`) a name that is not there and a dtype that weights cannot have. */
  info(name: string): TensorInfo
  /**
   * The tensor's bytes in order, in chunks of at most 16 MiB. Each chunk holds whole elements and starts at offset 0 of its
   * buffer, so it can be viewed as any typed array; the buffer is used again for the chunk after the next.
   *
   * @param buffers - for tensors that are read one after the other, in turn with what the one before left.
   */
  read(name: string, buffers?: ChunkBuffers): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined>
  close(): Promise<void>
}

const chunkBytes = 16 * 1024 * 1024

/** Two buffers that chunks lie in by turns, so that one can be read while the other is in use. */
export class ChunkBuffers {
  readonly #buffers = [new Uint8Array(0), new Uint8Array(0)]
  #next = 0

  take(bytes: number): Uint8Array<ArrayBuffer> {
    const place = this.#next
    this.#next = 1 - place
    if (this.#buffers[place]!.length < bytes) this.#buffers[place] = new Uint8Array(bytes)
    return this.#buffers[place]!.subarray(0, bytes)
  }
}

const single = "model.safetensors"
const index = "model.safetensors.index.json"

/**
 * Opens `model.safetensors`, or the files that `model.safetensors.index.json` names, and checks every header before
 * any tensor is read. The files stay open until `close()`.
 *
 * @param file - one file to be opened instead.
 * @throws GigpoError `BAD_MODEL` for a missing or malformed file (pickle files, which can run code, are never read),
 * `IO` when the system cannot read.
 */
export async function openSafetensors(directory: string, file?: string): Promise<TensorFiles> {
  const present = await listModelFolder(directory)
  const shards: Shard[] = []
  try {
    if (file !== undefined) shards.push(await openShard(join(directory, file)))
    else if (present.has(single)) shards.push(await openShard(join(directory, single)))
    else if (present.has(index)) await openIndexed(directory, present, shards)
    else throw noSafetensors(directory, present)
    return tensorFiles(directory, shards)
  } catch (error) {
    await closeShards(shards)
    throw error
  }
}

async function listModelFolder(directory: string): Promise<Set<string>> {
  try {
    return new Set(await readdir(directory))
  } catch (cause) {
    if (!isSystemError(cause) || (cause.code !== "ENOENT" && cause.code !== "ENOTDIR")) {
      throw ioError("list", directory, cause)
    }
    const message = `${directory} is not a folder. Give the path of a downloaded Hugging Face model folder.`
    throw new GigpoError("BAD_MODEL", message, { cause })
  }
}

function noSafetensors(directory: string, present: ReadonlySet<string>): GigpoError {
  const pickle = [...present].find((name) => /\.(bin|pt|pth)$/.test(name) && name !== "training_args.bin")
  const message = pickle
    ? `${directory} has ${pickle} but no ${single}. Pickle files can run code when read, so they are never read here: ` +
      'convert it with Python, AutoModelForCausalLM.from_pretrained(folder).save_pretrained("converted").'
    : `${directory} has neither ${single} nor ${index}. Give the path of a downloaded Hugging Face model folder.`
  return new GigpoError("BAD_MODEL", message)
}

/** Opens the files that the index names into `shards`; index and files must hold exactly the same tensors. */
async function openIndexed(directory: string, present: ReadonlySet<string>, shards: Shard[]): Promise<void> {
  const path = join(directory, index)
  const weightMap = await readWeightMap(path)
  const held = new Set<string>()
  for (const file of new Set(weightMap.values())) {
    if (!present.has(file)) {
      throw new GigpoError("BAD_MODEL", `${path} names ${quote(file)}, which is missing. Download the model again.`)
    }
    const shard = await openShard(join(directory, file))
    shards.push(shard)
    for (const name of shard.tensors.keys()) {
      if (weightMap.get(name) !== file) throw malformed(path, `it does not place tensor ${quote(name)} in ${file}`)
      held.add(name)
    }
  }
  for (const [name, file] of weightMap) {
    if (!held.has(name)) throw malformed(path, `it places tensor ${quote(name)} in ${file}, which lacks it`)
  }
}

async function readWeightMap(path: string): Promise<Map<string, string>> {
  const root = parseUntrusted(await readSmallFile(path), path)
  const weightMap = root instanceof Map ? root.get("weight_map") : undefined
  if (!(weightMap instanceof Map)) throw malformed(path, "it has no weight_map")
  for (const [name, file] of weightMap) {
    // A name, not a path: a model must not reach files outside its folder.
    if (typeof file !== "string" || !/^[^/\\:\0]+\.safetensors$/.test(file)) {
      throw malformed(path, `tensor ${quote(name)} must be in a .safetensors file of the same folder`)
    }
  }
  return weightMap as Map<string, string>
}

function tensorFiles(directory: string, shards: readonly Shard[]): TensorFiles {
  const where = new Map(shards.flatMap((shard) => [...shard.tensors.keys()].map((name) => [name, shard] as const)))
  let closed = false

  const find = (name: string): { shard: Shard; entry: HeaderEntry; info: TensorInfo } => {
    const shard = where.get(name)
    const entry = shard?.tensors.get(name)
    if (!shard || !entry) {
      throw new GigpoError("BAD_MODEL", `${directory} has no tensor ${quote(name)}. Does config.json fit the model?`)
    }
    const { dtype, shape } = entry
    if (dtype !== "F32" && dtype !== "F16" && dtype !== "BF16") {
      const fix = "Weights are read from F32, F16 or BF16: use a model that is not quantized, or convert it."
      throw new GigpoError("BAD_MODEL", `Tensor ${quote(name)} in ${shard.path} is ${dtype}. ${fix}`)
    }
    return { shard, entry, info: { dtype, shape, bytes: entry.end - entry.begin } }
  }

  async function* read(
    name: string,
    buffers = new ChunkBuffers(),
  ): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined> {
    const { shard, entry } = find(name)
    for (let at = entry.begin; at < entry.end; at += chunkBytes) {
      if (closed) throw new GigpoError("DISPOSED", `${directory} was closed before ${quote(name)} was read to its end.`)
      const chunk = buffers.take(Math.min(chunkBytes, entry.end - at))
      await readFully(shard.handle, shard.path, chunk, shard.start + at)
      yield chunk
    }
  }

  return {
    names: [...where.keys()],
    metadata: new Map(shards.flatMap((shard) => [...shard.metadata])),
    info: (name) => find(name).info,
    read,
    close: async () => {
      if (closed) return
      closed = true
      await closeShards(shards)
    },
  }
}

async function closeShards(shards: readonly Shard[]): Promise<void> {
  for (const shard of shards) await shard.handle.close()
}
