// Folders whose files are changed one at a time.
import { cpSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join, relative } from "node:path"
import { fileURLToPath } from "node:url"

export const fixture = (path) => fileURLToPath(new URL(`../../fixtures/${path}`, import.meta.url))

/** Files below a folder, as seeds whose names are their paths in it. */
export function seedsOf(folder, wanted = () => true) {
  const entries = readdirSync(folder, { recursive: true }).map(String).sort()
  const files = entries.filter((name) => wanted(name) && statSync(join(folder, name)).isFile())
  return files.map((name) => ({ name: relative(folder, join(folder, name)), bytes: readFileSync(join(folder, name)) }))
}

/** Runs `work` on a copy of a folder that has one file changed. What a run leaves behind is removed. */
export async function withChanged(folder, copy, { name, bytes }, work) {
  rmSync(copy, { recursive: true, force: true })
  cpSync(folder, copy, { recursive: true })
  writeFileSync(join(copy, name), bytes)
  return await work(copy)
}
