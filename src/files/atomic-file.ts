import { type FileHandle, open, rename, rm } from "node:fs/promises"
import { dirname } from "node:path"
import { flush } from "./flush.ts"
import { io, ioError, isSystemError } from "./io-error.ts"
import { temporaryOf } from "./seal.ts"

/** Writes a file from its beginning. */
export type FillFile = (file: FileHandle) => Promise<void>

/**
 * Replaces the file at `path` atomically by a text or by what `fill` writes. After a crash the old or the new file
 * exists, and possibly a `<path>.tmp-<random>`.
 *
 * @throws GigpoError `IO`; errors of `fill`
 */
export async function replaceFile(path: string, content: string | FillFile): Promise<void> {
  const temporary = await io("write", path, temporaryOf(path))
  try {
    await writeFlushed(temporary, typeof content === "string" ? (file) => file.writeFile(content) : content)
    await rename(temporary, path)
    await flush(dirname(path)) // a rename is durable only once the folder is flushed
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
