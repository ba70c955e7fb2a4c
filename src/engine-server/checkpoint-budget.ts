import * as fs from "node:fs/promises"
import { lstat, readdir } from "node:fs/promises"
import { join } from "node:path"
import { ApiError } from "../chat/api-error.ts"
import { io, isMissing } from "../files/io-error.ts"

/** Default limit of checkpoints, as a share of the free disk space. The rest is left to other programs. */
const shareOfDisk = 0.9

/** Limit of the bytes in a folder of checkpoints. */
export class CheckpointBudget {
  readonly #folder: string
  #most: Promise<number> | undefined

  /** @param most - maximum bytes of all checkpoints. Default: 90 % of their size plus the free space when the first is saved. */
  constructor(folder: string, most: number | undefined) {
    this.#folder = folder
    if (most !== undefined) this.#most = Promise.resolve(most)
  }

  /**
   * Checks that a checkpoint fits the limit.
   *
   * @param place - folder of all versions of the checkpoint; a new version replaces the others
   * @param version - name of the written version; absent before writing, where some space must be left
   * @throws ApiError 507 where checkpoints exceed the limit
   */
  async check(place: string, version?: string): Promise<void> {
    this.#most ??= this.#ofDisk()
    const most = await this.#most
    const [all, versions, own] = await Promise.all([
      bytesIn(this.#folder),
      bytesIn(place),
      version === undefined ? 1 : bytesIn(join(place, version)),
    ])
    const held = all - versions + own
    if (held > most)
      throw new ApiError(
        507,
        `With this checkpoint, all checkpoints would take ${mebibytes(held)} MiB; the limit is ${mebibytes(most)} MiB. Delete some first, or raise ` +
          "the engine's --checkpoint-size.",
      )
  }

  async #ofDisk(): Promise<number> {
    const { bavail, bsize } = await io("look at", this.#folder, fs.statfs(this.#folder))
    return shareOfDisk * (bavail * bsize + (await bytesIn(this.#folder)))
  }
}

const mebibytes = (bytes: number) => Math.ceil(bytes / 2 ** 20)

/** Returns the total bytes of the files in a folder, recursively. Links are not followed. */
async function bytesIn(folder: string): Promise<number> {
  try {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true })
    const sizes = entries.map(async (entry) => (entry.isFile() ? await sizeOf(join(entry.parentPath, entry.name)) : 0))
    return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
  } catch (cause) {
    if (isMissing(cause)) return 0 // removed concurrently
    return await io("look at", folder, Promise.reject(cause))
  }
}

async function sizeOf(path: string): Promise<number> {
  try {
    return (await lstat(path)).size
  } catch (cause) {
    if (isMissing(cause)) return 0
    throw cause
  }
}
