import { lstat } from "node:fs/promises"
import { insideModel } from "./inside.ts"
import { isMissing } from "./io-error.ts"
import { compareFile, type WrittenFile } from "./manifest.ts"

/** State of files that were found unchanged, by path. */
const seen = new Map<string, string>()
/** Time resolution of file systems in milliseconds: two changes may have the same time. */
const coarse = 2000

/** Like `compareFile`, but does not read a file again that was compared in this process and has not changed since. */
export async function compared(folder: string, file: WrittenFile): Promise<"missing" | "same" | "other"> {
  const path = await insideModel(folder, file.name)
  const state = await stateOf(path)
  if (state && seen.get(path) === `${state.text} ${file.sha256}`) return "same"
  const found = await compareFile(folder, file, insideModel)
  if (found === "same" && state && Date.now() - state.changed > coarse) seen.set(path, `${state.text} ${file.sha256}`)
  return found
}

async function stateOf(path: string): Promise<{ readonly text: string; readonly changed: number } | undefined> {
  try {
    const { dev, ino, size, ctimeNs, mtimeNs, ctimeMs } = await lstat(path, { bigint: true })
    return { text: [dev, ino, size, ctimeNs, mtimeNs].join(" "), changed: Number(ctimeMs) }
  } catch (cause) {
    if (isMissing(cause)) return undefined
    throw cause
  }
}
