import { stat } from "node:fs/promises"
import { join } from "node:path"
import { checkWritable } from "../files/check-space.ts"
import { linkAbort } from "../util/linked-abort.ts"
import { hasBlob, type Place, placeBlob } from "./cache.ts"
import { downloadBlob, partialOf } from "./download.ts"
import type { HubFile } from "./listing.ts"
import { locked } from "./lock.ts"
import type { HubProgress } from "./progress.ts"
import type { HubRequest } from "./request.ts"

/** Number of files that are downloaded in parallel. */
const atOnce = 4

interface Fetching {
  readonly commit: string
  readonly files: readonly HubFile[]
  /** Files that the snapshot lacks. */
  readonly missing: readonly HubFile[]
  /** Name of the model, for messages. */
  readonly what: string
  readonly onProgress: ((progress: HubProgress) => void) | undefined
}

/**
 * Downloads the missing files of a snapshot, small files first. A file appears in the snapshot when it is complete.
 *
 * @throws GigpoError `IO` for too little disk space, before anything is downloaded; errors of `downloadBlob`
 */
export async function fetchFiles(hubRequest: HubRequest, place: Place, fetching: Fetching): Promise<void> {
  const { commit, files, missing, what, onProgress = () => {} } = fetching
  const bytes = total(files)
  const there = new Map(await Promise.all(missing.map(async (file) => [file, await begun(place, file)] as const)))
  const left = total(missing) - sum([...there.values()])
  onProgress({ kind: "start", model: what, files: files.length, bytes, missing: left })
  await checkWritable(place.blobs, left)
  let done = bytes - left
  const controller = new AbortController()
  const unlink = linkAbort(hubRequest.signal, controller)
  const own = { ...hubRequest, signal: controller.signal }
  const queue = missing.toSorted((a, b) => a.size - b.size)
  const one = async (file: HubFile): Promise<void> => {
    const onWait = () =>
      onProgress({ kind: "note", text: `Another process is downloading ${file.path}; waiting for it.` })
    const onBytes = (now: number) => {
      done += now - there.get(file)!
      there.set(file, now)
      onProgress({ kind: "bytes", done, total: bytes })
    }
    await locked(join(place.locks, `${file.blob}.lock`), { signal: own.signal, onWait }, async () => {
      await downloadBlob(own, place, { commit, file }, onBytes)
      await placeBlob(place, commit, file)
    })
  }
  const worker = async (): Promise<void> => {
    for (let file = queue.shift(); file; file = queue.shift()) await one(file)
  }
  try {
    const workers = Array.from({ length: atOnce }, () =>
      worker().catch((error) => {
        controller.abort(error) // the first error ends the others
        throw error
      }),
    )
    const ended = await Promise.allSettled(workers)
    if (ended.some(({ status }) => status === "rejected")) throw controller.signal.reason
  } finally {
    unlink()
  }
}

/** Returns the number of bytes of a blob that were downloaded before. */
async function begun(place: Place, file: HubFile): Promise<number> {
  if (await hasBlob(place, file)) return file.size
  const partial = await stat(partialOf(place, file)).catch(() => undefined)
  return partial && partial.size <= file.size ? partial.size : 0
}

const sum = (numbers: readonly number[]) => numbers.reduce((all, one) => all + one, 0)
const total = (files: readonly HubFile[]) => sum(files.map(({ size }) => size))
