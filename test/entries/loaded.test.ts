import { execFile } from "node:child_process"
import { existsSync } from "node:fs"
import { join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { expect, it } from "vitest"
import { exportsOf } from "./declared.ts"
import { entryNames, folder } from "./entries.ts"

// What importing an entry point costs, counted in a process of its own on modules/, which has one file for each module.

const [source, built] = ["src", "modules"].map((name) => join(import.meta.dirname, "../..", name)) as [string, string]
const program = join(import.meta.dirname, "programs/loaded.mjs")
const notBuilt = !existsSync(join(built, "entries/index.js"))

/** Entry points that another one loads, with the reason. */
const needed: Readonly<Record<string, readonly string[]>> = {
  // The table of algorithms is made of the definitions of estimators and losses.
  algorithms: ["advantages", "losses"],
  // The table of environments holds the options of all, and those of these two are next to their code.
  environments: ["environments/cards", "environments/tasks"],
  // A benchmark opens any environment and plays it.
  evaluation: ["environments/cards", "environments/tasks"],
}

/** Small ones that others are built on: rows of an engine, memories of environments. */
const foundations = ["engine", "prompts"]

/** Most modules of this package that an entry point other than `gigpo` may load. */
const limit = 260

/** Files that declare the values of an entry point, relative to src/, without extension. */
function homes(entry: string): string[] {
  const values = exportsOf(entry).filter(({ isType }) => !isType)
  return [...new Set(values.map(({ file }) => relative(source, file).replace(/\.ts$/, "")))]
}

/** Modules of this package that importing an entry point loads, relative to modules/, without extension. */
async function loaded(entry: string): Promise<string[]> {
  const path = join(built, "entries", `${entry}.js`)
  const { stdout } = await promisify(execFile)(process.execPath, [program, path])
  return (JSON.parse(stdout) as string[])
    .filter((url) => url.startsWith("file:"))
    .map((url) => relative(built, fileURLToPath(url)).replace(/\.[cm]?js$/, ""))
    .filter((file) => !file.startsWith(".."))
}

it.skipIf(notBuilt)(
  "importing gigpo loads engines, tokenizer and runs; train, sft, evaluate, rollout and environments are loaded by their first call",
  async () => {
    const files = await loaded("index")
    expect(files).toContain("engine/native/native-policy")
    expect(files.length).toBeLessThan(220)
    const late =
      /^(tokenizer\/(jinja\/template|bpe\/open)|hub\/download|environment\/(registry|cards)|loss\/|credit\/ppo|rollout\/(episode|constrain)|training\/(iterations|prepare|summary))/
    expect(files.filter((file) => late.test(file))).toEqual([])
  },
)

it.skipIf(notBuilt).each(entryNames.filter((entry) => entry !== "index"))(
  "importing gigpo/%s loads no other entry point's code",
  async (entry) => {
    const files = await loaded(entry)
    expect(files).toContain(relative(source, join(folder, entry)))
    expect(files.length).toBeLessThan(limit)
    const others = entryNames.filter((other) => ![entry, "index", ...foundations].includes(other))
    const loads = others.filter((other) => {
      const found = homes(other).filter((file) => files.includes(file))
      return found.length > 0 && found.length >= homes(other).length / 2
    })
    expect(loads).toEqual(needed[entry] ?? [])
  },
)
