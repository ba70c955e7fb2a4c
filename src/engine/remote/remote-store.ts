import { randomBytes } from "node:crypto"
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { io, isThere } from "../../files/io-error.ts"
import { readLinked } from "../../files/regular-file.ts"
import { copyInto } from "../../model-files/copied-files.ts"
import { GigpoError } from "../../util/errors.ts"
import type { Json } from "../../util/state.ts"
import type { ModelStore } from "../engine.ts"
import type { ProbeReport } from "./capabilities.ts"
import type { RemoteModel } from "./remote-model.ts"

/** File that names weights saved on a server. */
export const remoteFile = "remote.json"

/** Location of weights that are saved on a server. */
export interface Kept {
  readonly url: string
  readonly path: string
  readonly baseModel: string
  /** Result of probing the server, if it was probed. */
  readonly probes?: ProbeReport | undefined
}

/** Remote engine, as the store needs it. */
export interface Keeper {
  readonly url: string
  readonly baseModel: string
  model(): Promise<RemoteModel>
  /** Continues from saved weights and moments. */
  goOnFrom(path: string): Promise<void>
  /** Local files to copy into the folder of a saved model, so that it can be opened again. */
  readonly files: readonly string[]
  probes(): Promise<ProbeReport | undefined>
}

/** Reads the remote.json of a folder; undefined if there is none. Throws `BAD_MODEL` and `IO`. */
export async function readKept(directory: string): Promise<Kept | undefined> {
  const file = join(directory, remoteFile)
  if (!(await isThere(file))) return undefined
  const kept: Partial<Kept> | null = JSON.parse(await io("read", file, readLinked(file)))
  if (typeof kept?.path === "string") return kept as Kept
  throw new GigpoError("BAD_MODEL", `${file} names no weights on a server: it has no "path". Give another folder.`)
}

/** Saves weights on the server. Returns their path. */
export async function saveThere(
  model: RemoteModel,
  path: "/save_weights" | "/save_weights_for_sampler",
  signal?: AbortSignal,
): Promise<string> {
  const name = `gigpo-${Date.now().toString(36)}-${randomBytes(4).toString("hex")}`
  const { body } = await model.call(path, { path: name, type: path.slice(1) }, { signal })
  const { path: kept } = (body ?? {}) as { path?: unknown }
  if (typeof kept === "string") return kept
  throw new GigpoError("ENGINE_REJECTED", "The engine saved the weights but returned no path.")
}

/** Returns the store of a remote engine: weights stay on the server, and a local folder names their path. */
export function remoteStore(keeper: Keeper): ModelStore {
  const { url, baseModel } = keeper
  const note = async (directory: string, path: string, files: readonly string[] = []) => {
    const file = join(directory, remoteFile)
    const kept: Kept = { url, path, baseModel, probes: await keeper.probes() }
    await io("write", file, writeFile(file, `${JSON.stringify(kept, null, 2)}\n`))
    await io("copy files to", directory, copyInto(directory, files))
  }
  return {
    save: async (directory, { files = [], signal } = {}) => {
      const path = await saveThere(await keeper.model(), "/save_weights", signal)
      await note(directory, path, [...keeper.files, ...files])
    },
    checkpoint: async (directory, { files } = {}) => {
      const path = await saveThere(await keeper.model(), "/save_weights")
      await note(directory, path, [...keeper.files, ...(files ?? [])])
      return { path }
    },
    restore: async (handle, directory) => await keeper.goOnFrom(pathOf(handle, directory)),
  }
}

/** Returns the path in a handle of a checkpoint. Throws `BAD_ARGUMENT` for the handle of another engine. */
export function pathOf(handle: Json, directory: string): string {
  const path = typeof handle === "object" && handle !== null && "path" in handle ? handle.path : undefined
  if (typeof path === "string") return path
  throw new GigpoError(
    "BAD_ARGUMENT",
    `The checkpoint in ${directory} belongs to another engine: it has no path on a server. Resume with the engine that wrote it.`,
  )
}
