// Folders of models, in one file and in several with an index, and of adapters on them, opened as for sampling.
import { cpSync, mkdirSync } from "node:fs"
import { join, sep } from "node:path"
import { NativePolicy } from "../../../modules/engine/native/native-policy.js"
import { openSafetensors } from "../../../modules/model-files/safetensors.js"
import { writeShardedSafetensors } from "../../../modules/model-files/safetensors-writer.js"
import { fixture, seedsOf, withChanged } from "./files.mjs"

const small = { device: "cpu", threads: 1, kvCacheBytes: 2 ** 20, microBatchTokens: 64 }
const wanted = { model: /^(config|generation_config)\.json$|^model.*$/, adapter: /^adapter_/ }

/** Copies a model in files of at most 64 KiB. */
async function shard(from, to) {
  mkdirSync(to)
  for (const name of ["config.json", "generation_config.json"]) cpSync(join(from, name), join(to, name))
  const files = await openSafetensors(from)
  const tensors = files.names.map((name) => ({ name, ...files.info(name), chunks: files.read(name) }))
  await writeShardedSafetensors(to, tensors, { maxFileBytes: 2 ** 16 })
  await files.close()
}

/** Headers of safetensors files as seeds of their own, since the bytes of tensors are most of a file. */
function headerSeeds({ name, bytes }) {
  if (!name.endsWith(".safetensors")) return []
  const end = 8 + Number(bytes.readBigUInt64LE())
  return Array(4).fill({ name, bytes: bytes.subarray(8, end), rest: bytes.subarray(end) })
}

/** The file of a header. */
function withLength(header, rest) {
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(header.length))
  return Buffer.concat([length, header, rest])
}

export async function prepare(scratch) {
  const folder = join(scratch, "folder")
  for (const [part, from] of [
    ["model", "models/qwen3"],
    ["adapter", "adapters/qwen3"],
  ]) {
    mkdirSync(join(folder, part), { recursive: true })
    cpSync(fixture(from), join(folder, part), { recursive: true, filter: (path) => path === fixture(from) || wanted[part].test(path.split("/").at(-1)) }) // biome-ignore format: one line
  }
  await shard(join(folder, "model"), join(folder, "sharded"))
  const files = seedsOf(folder)
  return {
    seeds: [...files, ...files.flatMap(headerSeeds)],
    run: ({ name, bytes, rest }) => {
      const input = { name, bytes: rest ? withLength(bytes, rest) : bytes }
      return withChanged(folder, join(scratch, "changed"), input, async (changed) => {
        const [part] = input.name.split(sep)
        const base = join(changed, "model")
        const policy = await NativePolicy.open(join(changed, part), { ...small, ...(part === "adapter" && { base }) })
        await policy.dispose()
      })
    },
  }
}
