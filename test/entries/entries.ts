import { readdirSync } from "node:fs"
import { join } from "node:path"

/** Folder of the entry points: a file `a/b.ts` is imported as `gigpo/a/b`. */
export const folder: string = join(import.meta.dirname, "../../src/entries")

/** Paths of all entry points relative to the folder, without extension; "index" is `gigpo` itself. */
export const entryNames: readonly string[] = readdirSync(folder, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .map((name) => name.replace(/\.ts$/, ""))
  .sort()
