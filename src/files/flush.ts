import { open, readdir } from "node:fs/promises"
import { join } from "node:path"

/** Flushes a file, or the entries of a folder, to disk. */
export async function flush(path: string): Promise<void> {
  // Windows can neither open a folder nor flush a file opened for reading.
  if (process.platform === "win32") return
  const handle = await open(path, "r")
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Flushes files before their folders. */
export async function flushTree(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) await flushTree(path)
    else if (entry.isFile()) await flush(path)
  }
  await flush(folder)
}
