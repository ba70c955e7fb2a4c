import { type FileHandle, open, rename, rm } from "node:fs/promises"
import { dirname } from "node:path"
import { flush } from "./flush.ts"
import { io, ioError, isSystemError } from "./io-error.ts"
import { temporaryOf } from "./seal.ts"

/** Writes a file from its beginning. */
export type FillFile = (file: FileHandle) => Promise<void>

/**
 * Puts a text, or what `fill` writes, in place of the file at `path`: after a crash there is the old file or the new one, never a
 * part, but perhaps a `<path>.tmp-<random>` beside it.
 *
 * @throws GigpoError `IO`; what else `fill` throws
 */
export async function replaceFile(path: string, content: string | FillFile): Promise<void> {
  const temporary = await io("write", path, temporaryOf(path))
  try {
    await writeFlushed(temporary, typeof content === "string" ? (file) => file.writeFile(content) : content)
    await rename(temporary, path)
    await flush(dirname(path)) // a rename lasts only when the folder that holds the name is on the disk
  } catch (cause) {
    await rm(temporary, { force: true }).catch(() => {})
    throw isSystemError(cause) ? ioError("write", path, cause) : cause
  }
}

async function writeFlushed(path: string, fill: FillFile): Promise<void> {
  const handle = await open(path, "wx")
  try {
    await fill(handle)
    await handle.sync()
  } finally {
    await handle.close()
  }
}
