import { type FileHandle, mkdir, open, rm } from "node:fs/promises"
import { hostname } from "node:os"
import { join } from "node:path"
import { io, isSystemError } from "../../files/io-error.ts"
import { eventFile } from "../../runs/files.ts"
import type { IterationReport } from "../../runs/report.ts"
import { scalarsOf } from "../data/scalars.ts"
import { fileVersion, scalars, sessionStart } from "./event-records.ts"

/** Growing event file, readable at any time. */
export class EventFile {
  readonly path: string
  readonly #handle: FileHandle
  #length = 0

  /**
   * Creates the folder and a new file with these reports, which supersedes older files: TensorBoard discards their data.
   *
   * @throws GigpoError `IO`
   */
  static async create(folder: string, reports: readonly IterationReport[]): Promise<EventFile> {
    await io("create", folder, mkdir(folder, { recursive: true }))
    const now = Date.now() / 1000
    // TensorBoard reads the files of a folder in the order of their names.
    const name = eventFile(Math.floor(now), hostname(), process.pid)
    for (let count = 0; ; count++) {
      const path = join(folder, `${name}.${count}`)
      const handle = await openNew(path)
      if (!handle) continue
      const file = new EventFile(path, handle)
      try {
        await file.#append(fileVersion(now), sessionStart(now, 0), ...reports.map(encoded))
        return file
      } catch (error) {
        await file.close()
        await rm(path, { force: true })
        throw error
      }
    }
  }

  private constructor(path: string, handle: FileHandle) {
    this.path = path
    this.#handle = handle
  }

  /** Appends a report and waits until it is on the disk. */
  async add(report: IterationReport): Promise<void> {
    await this.#append(encoded(report))
  }

  async close(): Promise<void> {
    await this.#handle.close()
  }

  /** Appends records at an explicit position, so that the next write overwrites the remains of a failed one. */
  async #append(...records: readonly Buffer[]): Promise<void> {
    const data = Buffer.concat(records)
    for (let done = 0; done < data.length; ) {
      const writing = this.#handle.write(data, done, data.length - done, this.#length + done)
      done += (await io("write", this.path, writing)).bytesWritten
    }
    await io("flush", this.path, this.#handle.datasync())
    this.#length += data.length
  }
}

function encoded(report: IterationReport): Buffer {
  const time = report.time === undefined ? Date.now() : Date.parse(report.time)
  return scalars(time / 1000, report.iteration, scalarsOf(report))
}

async function openNew(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, "wx")
  } catch (cause) {
    if (isSystemError(cause) && cause.code === "EEXIST") return undefined
    return await io("create", path, Promise.reject(cause))
  }
}
