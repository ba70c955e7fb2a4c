import { createHash, randomBytes } from "node:crypto"
import { open, rm } from "node:fs/promises"
import { join, resolve } from "node:path"
import { nearestFolder } from "../../files/check-space.ts"
import { isSystemError } from "../../files/io-error.ts"
import { GigpoError } from "../../util/errors.ts"

const chunk = 2 ** 22
const chunks = 8

/**
 * Measures the rate of writing checkpoints at `folder`, in bytes per second: data are written, flushed and read twice
 * with a hash. Leaves no file. Undefined if nothing can be written.
 */
export async function measureDisk(folder: string): Promise<number | undefined> {
  const started = performance.now()
  try {
    const path = join(await nearestFolder(resolve(folder)), `.gigpo-estimate-${randomBytes(6).toString("hex")}`)
    const file = await open(path, "wx+")
    try {
      await rm(path) // the file exists until it is closed
      const bytes = randomBytes(chunk)
      for (let i = 0; i < chunks; i++) await file.write(bytes, 0, chunk, i * chunk)
      await file.sync()
      for (const hash of [createHash("sha256"), createHash("sha256")])
        for (let i = 0; i < chunks; i++) hash.update((await file.read(bytes, 0, chunk, i * chunk)).buffer)
    } finally {
      await file.close()
    }
  } catch (error) {
    if (isSystemError(error) || GigpoError.is(error)) return undefined
    throw error
  }
  return (1000 * chunk * chunks) / (performance.now() - started)
}
