import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { filesOf, type Place, readRef } from "./cache.ts"
import { chooseFiles } from "./choose.ts"
import { type HubName, isCommit } from "./names.ts"

/** Model in the cache. */
export interface Cached {
  readonly commit: string
  /** Path to open: the snapshot's folder, or a GGUF file in it. */
  readonly path: string
}

/** Maximum length of an index of weights, in characters. */
const largestIndex = 64 * 2 ** 20

/**
 * Returns a model from the cache. For a branch or tag, this is the commit that it pointed to at the last request. Undefined for a model
 * that is missing or incomplete, as after an interrupted download.
 */
export async function cachedModel(place: Place, name: HubName, weights: boolean): Promise<Cached | undefined> {
  const { revision = "main" } = name
  const commit = isCommit(revision) ? revision : await readRef(place, revision)
  if (commit === undefined) return undefined
  const folder = join(place.snapshots, commit)
  const files = await filesOf(place, commit)
  try {
    const { gguf } = chooseFiles(name, files, weights)
    if (gguf !== undefined) return { commit, path: join(folder, ...gguf.split("/")) }
  } catch {
    return undefined
  }
  const names = new Set(files.map(({ path }) => path))
  return (await isWholeSnapshot(folder, names, weights)) ? { commit, path: folder } : undefined
}

/** Whether the files that every model or adapter needs exist. Missing optional files are reported when the model is opened. */
export async function isWholeSnapshot(folder: string, names: ReadonlySet<string>, weights: boolean): Promise<boolean> {
  if (!["config.json", "adapter_config.json", "tokenizer_config.json"].some((name) => names.has(name))) return false
  if (!weights || names.has("model.safetensors") || names.has("adapter_model.safetensors")) return true
  const shards = await shardsOf(join(folder, "model.safetensors.index.json"))
  return shards.length > 0 && shards.every((name) => names.has(name))
}

async function shardsOf(index: string): Promise<string[]> {
  try {
    const text = await readFile(index, "utf8")
    if (text.length > largestIndex) return []
    return [...new Set(Object.values(Object(JSON.parse(text).weight_map) as Record<string, string>))]
  } catch {
    return []
  }
}
