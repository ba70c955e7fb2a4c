import { randomBytes } from "node:crypto"
import { open, rename, rm } from "node:fs/promises"
import { dirname } from "node:path"
import { flush } from "./flush.ts"
import { ioError } from "./io-error.ts"

/** Puts `text` in place of the file at `path`: after a crash there is the old text or the new one, never a part. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const temporary = `${path}.tmp-${randomBytes(6).toString("hex")}`
  try {
    await writeFlushed(temporary, text)
    await rename(temporary, path)
    await flush(dirname(path)) // a rename lasts only when the folder that holds the name is on the disk
  } catch (cause) {
    await rm(temporary, { force: true }).catch(() => {})
    throw ioError("write", path, cause)
  }
}

async function writeFlushed(path: string, text: string): Promise<void> {
  const handle = await open(path, "wx")
  try {
    await handle.writeFile(text)
    await handle.sync()
  } finally {
    await handle.close()
  }
}
