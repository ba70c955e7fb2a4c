import { readdir } from "node:fs/promises"
import { join } from "node:path"
import { ioError, isSystemError } from "../files/io-error.ts"
import { GigpoError } from "../util/errors.ts"
import type { ReadableGgufType } from "./gguf/types.ts"
import { type HeaderEntry, malformed, parseUntrusted } from "./safetensors-header.ts"
import { openShard, readFully, readSmallFile, type Shard } from "./safetensors-shard.ts"
import { quote } from "./strict-json.ts"

/** Type and size of a stored tensor. */
export interface TensorInfo {
  readonly dtype: ReadableGgufType
  readonly shape: readonly number[]
  readonly bytes: number
}

/** Open tensor files of a model with checked headers. Only the headers are in memory. */
export interface TensorFiles {
  /** Names in the order of the bytes, file by file. */
  readonly names: readonly string[]
  /** Metadata of the headers. */
  readonly metadata: ReadonlyMap<string, string>
  /** Returns type and size of a tensor. Throws `BAD_MODEL` for an unknown name and an unsupported dtype. */
  info(name: string): TensorInfo
  /**
   * Returns the bytes of a tensor in order, in chunks of at most 16 MiB. A chunk holds complete elements and starts at offset 0 of
   * its buffer, so that it can be viewed as any typed array. The buffer is reused for the chunk after the next.
   *
   * @param buffers - buffers to share between tensors that are read one after another.
   */
  read(name: string, buffers?: ChunkBuffers): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined>
  close(): Promise<void>
}

const chunkBytes = 16 * 1024 * 1024

/** Two alternating buffers, so that one chunk can be read while the previous one is in use. */
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
 * Opens `model.safetensors`, or the files that `model.safetensors.index.json` names, and checks all headers. The files stay
 * open until `close()`. Pickle files, which can run code, are never read.
 *
 * @param file - name of a single file to open instead
 * @throws GigpoError `BAD_MODEL` for a missing or malformed file; `IO`
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
    ? `${directory} has ${pickle} but no ${single}. Pickle files can run code when read, so gigpo never reads them: ` +
      'convert it with Python, AutoModelForCausalLM.from_pretrained(folder).save_pretrained("converted").'
    : `${directory} has neither ${single} nor ${index}. Give the path of a downloaded Hugging Face model folder.`
  return new GigpoError("BAD_MODEL", message)
}

/** Opens the files that the index names, and appends them to `shards`. Index and files must have exactly the same tensors. */
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
      if (weightMap.get(name) !== file) throw malformed(path, `it does not list tensor ${quote(name)} for ${file}`)
      held.add(name)
    }
  }
  for (const [name, file] of weightMap) {
    if (!held.has(name)) throw malformed(path, `it lists tensor ${quote(name)} for ${file}, which lacks the tensor`)
  }
}

async function readWeightMap(path: string): Promise<Map<string, string>> {
  const root = parseUntrusted(await readSmallFile(path), path)
  const weightMap = root instanceof Map ? root.get("weight_map") : undefined
  if (!(weightMap instanceof Map)) throw malformed(path, "it has no weight_map")
  for (const [name, file] of weightMap) {
    // Only a file name, not a path: a model must not access files outside its folder.
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
      throw new GigpoError(
        "BAD_MODEL",
        `${directory} has no tensor ${quote(name)}. Check that config.json belongs to the model.`,
      )
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
