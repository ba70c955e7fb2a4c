import { createHash } from "node:crypto"
import { mkdir, readFile, realpath } from "node:fs/promises"
import { join } from "node:path"
import { replaceFile } from "./atomic-file.ts"
import { io, isSystemError } from "./io-error.ts"
import { stateFolder } from "./state-folder.ts"

// A folder may come from another person with all its content. The files that this user's gigpo wrote on this machine are
// therefore recorded outside of the folders: one small file per path with the digest of the content.

/** Records the current content of the file at `path` as written by this user on this machine. */
export async function noteWritten(path: string): Promise<void> {
  const notes = notesFolder()
  await io("create", notes, mkdir(notes, { recursive: true, mode: 0o700 }))
  const text = await io("read", path, readFile(path, "utf8"))
  await replaceFile(await noteOf(path), `${digest(text)}\n`)
}

/** Whether the file at `path` with the content `text` was recorded by this user on this machine, at this path. */
export async function wasWrittenHere(path: string, text: string): Promise<boolean> {
  try {
    return (await readFile(await noteOf(path), "utf8")).trim() === digest(text)
  } catch (cause) {
    if (isSystemError(cause)) return false
    throw cause
  }
}

async function noteOf(path: string): Promise<string> {
  return join(notesFolder(), digest(await realpath(path)))
}

function notesFolder(): string {
  return join(stateFolder(), "written")
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex")
}
