import { readdir } from "node:fs/promises"
import { basename, join } from "node:path"
import { ApiError } from "../chat/api-error.ts"
import { inside, namesIn } from "../files/inside.ts"
import { isThere } from "../files/io-error.ts"
import { GigpoError } from "../util/errors.ts"
import type { Json } from "../util/state.ts"
import { CheckpointBudget } from "./checkpoint-budget.ts"
import type { ServedModel } from "./served-model.ts"
import {
  aboutFile,
  ifMissing,
  isBeingWritten,
  newVersion,
  publishVersion,
  readVersion,
  removeOthers,
  type Version,
  withdrawVersion,
  writeVersion,
} from "./versions.ts"

/** Kinds of saved weights: `weights` include the optimizer's moments, `sampler_weights` do not. */
const kinds = ["weights", "sampler_weights"] as const
export type Kind = (typeof kinds)[number]

interface About {
  readonly base_model: string
  readonly is_lora: boolean
  readonly lora_rank: number
  readonly handle: Json
}

const scheme = "tinker://"
const namePattern = /^(?!\.+$)[\w.-]{1,128}$/
/** Ids of this server consist of a session id and a number. Other ids of this form are allowed, but name no model. */
const modelPattern = /^(?!\.+$)[\w.:-]{1,80}$/

/** Weights on disk by the clients' paths, tinker://<model>/<kind>/<name>. After a crash, either the earlier or the new weights are complete. */
export class KeptWeights {
  readonly #folder: string
  readonly #budget: CheckpointBudget
  /** Names of versions that are being written or read, which must not be removed, with the number of uses. */
  readonly #used = new Map<string, number>()
  readonly #turns = new Map<string, Promise<unknown>>()

  /** @param most - maximum bytes of all weights; see `CheckpointBudget` */
  constructor(folder: string, most?: number) {
    this.#folder = folder
    this.#budget = new CheckpointBudget(folder, most)
  }

  /** Returns the path of weights. Throws `ApiError` 400 for an invalid name. */
  pathOf(model: ServedModel, kind: Kind, name: string): string {
    if (!namePattern.test(name))
      throw new ApiError(
        400,
        `${shown(name)} is not a valid checkpoint name: use at most 128 letters, digits, dots, dashes and underscores.`,
      )
    return `${scheme}${model.id}/${kind}/${name}`
  }

  /** Saves weights and returns their path. Throws `ApiError` 400 for an invalid or existing name, and 507 above the size limit. */
  async save(model: ServedModel, kind: Kind, name: string, overwrite: boolean): Promise<string> {
    const path = this.pathOf(model, kind, name)
    const folder = await this.#folderOf(path)
    const refuseTaken = async () => {
      if (!overwrite && (await readVersion(folder)))
        throw new ApiError(400, `${path} already exists; choose another name, or set overwrite.`)
    }
    await refuseTaken()
    const version = await newVersion(folder)
    await this.#budget.check(folder)
    const saved = this.#use(version, async () => {
      const about = await writeVersion(folder, version, async (directory): Promise<About> => {
        const handle = await model.policy.store.checkpoint(directory)
        return { base_model: model.baseModel, is_lora: model.rank > 0, lora_rank: model.rank, handle }
      })
      await this.#budget.check(folder, version)
      await this.#turn(folder, async () => {
        await refuseTaken()
        await publishVersion(folder, version, about)
      })
    })
    try {
      await saved
    } finally {
      await this.#tidy(folder) // removes the earlier version, or one that was not published
    }
    return path
  }

  /** Returns the description of saved weights. Throws `ApiError` 404 for a path without weights. */
  async read(path: string): Promise<About> {
    return (await this.#find(path)).about
  }

  /** Returns the folder of the weights at a path. Weights saved there later have another folder. */
  async directoryOf(path: string): Promise<string> {
    return (await this.#find(path)).directory
  }

  /** Runs work with the weights at a path. Their folder stays until the work has ended, even if they are replaced or deleted. */
  async using<T>(path: string, work: (version: Version<About>) => Promise<T>): Promise<T> {
    const folder = await this.#folderOf(path)
    let stale = false
    try {
      // The version must be marked as used before another request can remove it.
      const begun = await this.#turn(folder, async () => {
        const version = await this.#find(path)
        const done = this.#use(basename(version.directory), () => work(version))
        done.catch(() => {})
        return { version, done }
      })
      const result = await begun.done
      stale = (await readVersion(folder))?.directory !== begun.version.directory
      return result
    } finally {
      if (stale) await this.#tidy(folder)
    }
  }

  async load(model: ServedModel, path: string, optimizer: boolean): Promise<void> {
    await this.using(path, async ({ directory, about: { handle, lora_rank } }) => {
      if (lora_rank !== model.rank)
        throw new GigpoError(
          "BAD_ARGUMENT",
          `${path} has rank ${lora_rank}, but the model has rank ${model.rank}. Create a model of the same rank.`,
        )
      if (optimizer) await model.policy.store.restore(handle, directory)
      else if (model.rank > 0) await model.policy.loadAdapter(directory)
      else await model.policy.load(directory)
      model.version++
    })
  }

  /** Deletes the weights at a path. Throws `ApiError` 404 for a path without weights. */
  async remove(path: string): Promise<void> {
    const folder = await this.#folderOf(path)
    await this.#turn(folder, async () => {
      await this.#find(path)
      await withdrawVersion(folder)
    })
    await this.#tidy(folder)
  }

  /** Returns the names of the weights of a model, as <kind>/<name>. */
  async list(modelId: string): Promise<string[]> {
    const folder = this.#modelFolder(modelId)
    const found = kinds.map(async (kind) => {
      const names = await namesIn(this.#folder, `${basename(folder)}/${kind}`)
      const counts = await Promise.all(names.map((name) => isThere(join(folder, kind, name, aboutFile))))
      return names.filter((_, i) => counts[i]).map((name) => `${kind}/${name}`)
    })
    return (await Promise.all(found)).flat()
  }

  /** Removes incomplete versions of processes that no longer run. */
  async recover(): Promise<void> {
    for (const model of await readdir(this.#folder).catch(ifMissing<string[]>([]))) {
      for (const kind of kinds) {
        for (const name of await namesIn(this.#folder, `${model}/${kind}`)) {
          const folder = await inside(this.#folder, `${model}/${kind}/${name}`)
          if (!(await isBeingWritten(folder))) await this.#tidy(folder, true)
        }
      }
    }
  }

  async #find(path: string): Promise<Version<About>> {
    const found = await readVersion<About>(await this.#folderOf(path))
    if (!found) throw new ApiError(404, `There are no weights at ${path}.`)
    return found
  }

  async #tidy(folder: string, own = false): Promise<void> {
    const isUsed = (name: string) => this.#used.has(name.replace(/\.tmp-[0-9a-f]+$/, ""))
    await this.#turn(folder, () => removeOthers(folder, isUsed, own))
  }

  async #use<T>(version: string, work: () => Promise<T>): Promise<T> {
    this.#used.set(version, (this.#used.get(version) ?? 0) + 1)
    try {
      return await work()
    } finally {
      const left = this.#used.get(version)! - 1
      if (left > 0) this.#used.set(version, left)
      else this.#used.delete(version)
    }
  }

  /** Runs short work on the versions of a folder, one call at a time. */
  async #turn<T>(folder: string, work: () => Promise<T>): Promise<T> {
    const turn = (this.#turns.get(folder) ?? Promise.resolve()).then(work)
    const settled = turn.catch(() => {})
    this.#turns.set(folder, settled)
    try {
      return await turn
    } finally {
      if (this.#turns.get(folder) === settled) this.#turns.delete(folder)
    }
  }

  async #folderOf(path: string): Promise<string> {
    const [model = "", kind = "", name = "", ...rest] = path.startsWith(scheme)
      ? path.slice(scheme.length).split("/")
      : []
    if (rest.length > 0 || !namePattern.test(name) || !kinds.some((one) => one === kind) || !modelPattern.test(model))
      throw new ApiError(400, `${shown(path)} is not a path of weights; expected tinker://<model>/weights/<name>.`)
    return await inside(this.#folder, `${basename(this.#modelFolder(model))}/${kind}/${name}`)
  }

  /** Returns the folder of a model. Throws `ApiError` 400 for an id that is not valid as part of a file name. */
  #modelFolder(modelId: string): string {
    if (!modelPattern.test(modelId)) throw new ApiError(400, `${shown(modelId)} is not a valid model id.`)
    return join(this.#folder, encodeURIComponent(modelId).replaceAll(".", "%2E"))
  }
}

const shown = (text: string) => JSON.stringify(text.slice(0, 200))
