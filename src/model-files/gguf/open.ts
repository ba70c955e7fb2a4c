import { type FileHandle, open, stat } from "node:fs/promises"
import { io } from "../../files/io-error.ts"
import { specialError } from "../../files/regular-file.ts"
import { badGguf, type GgufHeader, MoreBytesNeeded, parseGguf } from "./metadata.ts"

/** Bytes of a file that are parsed first. The header of a model with 50,000 tokens fits. */
const firstBytes = 4 * 2 ** 20
/** Maximum size of a header in bytes. With a vocabulary of 262,144 tokens, a header has 7 MB. */
const mostBytes = 256 * 2 ** 20

/** Open GGUF file with a parsed header. */
export interface GgufFile extends GgufHeader {
  readonly path: string
  readonly handle: FileHandle
}

/** Whether a path names a regular file that starts with the magic number of GGUF. */
export async function isGguf(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined)
  if (!found?.isFile()) return false
  const handle = await io("open", path, open(path, "r"))
  try {
    const magic = Buffer.alloc(4)
    await io("read", path, handle.read(magic, 0, 4, 0))
    return magic.toString("latin1") === "GGUF"
  } finally {
    await handle.close()
  }
}

/**
 * Opens a GGUF file and parses the header. The handle stays open until the caller closes it.
 *
 * @throws GigpoError `BAD_MODEL` for a damaged file, one part of a split model, or a header beyond 256 MiB; `UNSAFE_PATH` for a
 * pipe or device; `IO`.
 */
export async function openGguf(path: string): Promise<GgufFile> {
  // Checked before opening, since opening a pipe waits for its writer.
  if (!(await io("read", path, stat(path))).isFile()) throw specialError(path)
  const handle = await io("open", path, open(path, "r"))
  try {
    const { size } = await io("read", path, handle.stat())
    const header = await readHeader(handle, path, size)
    const parts = header.metadata.get("split.count") ?? 1
    if (parts !== 1 && parts !== 0)
      throw badGguf(path, `it is one of ${String(parts)} parts; join them with llama-gguf-split --merge`)
    return { path, handle, ...header }
  } catch (error) {
    await handle.close()
    throw error
  }
}

async function readHeader(handle: FileHandle, path: string, size: number): Promise<GgufHeader> {
  for (let length = Math.min(firstBytes, size); ; length = Math.min(length * 4, size)) {
    const bytes = Buffer.alloc(length)
    await readAt(handle, path, bytes, 0)
    try {
      return parseGguf(bytes, size, path)
    } catch (error) {
      if (!(error instanceof MoreBytesNeeded)) throw error
      if (length === size) throw badGguf(path, "it ends within its header: the download is incomplete")
      if (length >= mostBytes) throw badGguf(path, "its header has more than 256 MiB")
    }
  }
}

/** Fills `target` from a position of the file; one read may return less than requested. */
export async function readAt(handle: FileHandle, path: string, target: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < target.length; ) {
    const { bytesRead } = await io("read", path, handle.read(target, done, target.length - done, position + done))
    if (bytesRead === 0) throw badGguf(path, `it ended at byte ${position + done} while it was read`)
    done += bytesRead
  }
}
