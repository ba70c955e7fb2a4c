import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { join, relative, sep } from "node:path"
import { GigpoError } from "../../errors.ts"
import { isThere } from "../../files/io-error.ts"
import type { Json } from "../../state.ts"
import { ApiError } from "../api-error.ts"
import type { ServedModel } from "./served-model.ts"

/** `weights` hold the optimizer's moments, too; `sampler_weights` only what samples. */
export type Kind = "weights" | "sampler_weights"

interface About {
  readonly base_model: string
  readonly is_lora: boolean
  readonly lora_rank: number
  readonly handle: Json
}

const scheme = "tinker://"
const namePattern = /^[\w.-]{1,128}$/

/** Weights on the disk, by the paths that clients know: tinker://<model>/<kind>/<name>. */
export class KeptWeights {
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
  }

  /** @throws ApiError 400 for a name that is none. */
  pathOf(model: ServedModel, kind: Kind, name: string): string {
    if (!namePattern.test(name) || /^\.+$/.test(name))
      throw new ApiError(
        400,
        `${JSON.stringify(name)} is no name of a checkpoint: letters, digits, dots, dashes, at most 128.`,
      )
    return `${scheme}${model.id}/${kind}/${name}`
  }

  /** @throws ApiError 400 for a name that is none, or is there. */
  async save(model: ServedModel, kind: Kind, name: string, overwrite: boolean): Promise<string> {
    const path = this.pathOf(model, kind, name)
    const folder = this.#folderOf(path)
    if (await isThere(folder)) {
      if (!overwrite) throw new ApiError(400, `${path} is there already; choose another name, or set overwrite.`)
      await rm(folder, { recursive: true })
    }
    await mkdir(join(folder, "model"), { recursive: true })
    const handle = await model.policy.store.checkpoint(join(folder, "model"))
    const about: About = { base_model: model.baseModel, is_lora: model.rank > 0, lora_rank: model.rank, handle }
    // Last: what has it is whole.
    await writeFile(join(folder, "about.json"), JSON.stringify(about))
    return path
  }

  /** @throws ApiError 404 for a path that is not there. */
  async read(path: string): Promise<About & { readonly directory: string }> {
    const folder = this.#folderOf(path)
    const file = join(folder, "about.json")
    if (!(await isThere(file))) throw new ApiError(404, `There are no weights at ${path}.`)
    return { ...(JSON.parse(await readFile(file, "utf8")) as About), directory: join(folder, "model") }
  }

  async load(model: ServedModel, path: string, optimizer: boolean): Promise<void> {
    const { directory, handle, lora_rank } = await this.read(path)
    if (lora_rank !== model.rank)
      throw new GigpoError("BAD_ARGUMENT", `${path} has rank ${lora_rank}, not ${model.rank}.`)
    if (optimizer) await model.policy.store.restore(handle, directory)
    else if (model.rank > 0) await model.policy.loadAdapter(directory)
    else await model.policy.load(directory)
    model.version++
  }

  async remove(path: string): Promise<void> {
    await this.read(path)
    await rm(this.#folderOf(path), { recursive: true })
  }

  /** Of one model, as <kind>/<name>. */
  async list(modelId: string): Promise<string[]> {
    const folder = join(this.#folder, encodeURIComponent(modelId))
    if (!(await isThere(folder))) return []
    const found = await readdir(folder, { recursive: true })
    return found
      .filter((name) => name.endsWith(`${sep}about.json`))
      .map((name) => name.slice(0, -`${sep}about.json`.length).replaceAll(sep, "/"))
  }

  #folderOf(path: string): string {
    const [model = "", kind = "", name = "", ...rest] = path.startsWith(scheme)
      ? path.slice(scheme.length).split("/")
      : []
    if (rest.length > 0 || !namePattern.test(name) || /^\.+$/.test(name) || !/^(sampler_)?weights$/.test(kind))
      throw new ApiError(
        400,
        `${JSON.stringify(path.slice(0, 200))} is no path of weights: tinker://<model>/weights/<name>.`,
      )
    const folder = join(this.#folder, encodeURIComponent(model).replaceAll(".", "%2E"), kind, name)
    if (relative(this.#folder, folder).startsWith("..")) throw new ApiError(400, "The path leads elsewhere.")
    return folder
  }
}
