import { open, stat } from "node:fs/promises"
import { io } from "../../files/io-error.ts"

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
