import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { LanguageServer } from "./language-server.ts"

// Every option of every table of the built package says what it is where it is hovered over.
const [dist, compiled] = ["dist", "modules"].map((name) =>
  fileURLToPath(new URL(`../../${name}`, import.meta.url)),
) as [string, string]
const folder = mkdtempSync(join(tmpdir(), "gigpo-hover-"))
const file = join(folder, "program.ts")

interface Told {
  readonly path: string
  readonly help: string
  readonly fallback: unknown
}

interface Entry extends Omit<Told, "path" | "fallback"> {
  readonly default?: unknown
  readonly fields?: object
  readonly common?: object
  readonly variants?: Readonly<Record<string, object>>
}

const isObject = (value: unknown): value is Entry => typeof value === "object" && value !== null
const isEntry = (value: unknown): value is Entry => isObject(value) && typeof value.help === "string"
const isTable = (value: unknown) => isObject(value) && Object.values(value).some(isEntry)

/** An entry and those in it. */
function* optionsOf(path: string, entry: Entry): Generator<Told> {
  if (entry.help !== "") yield { path, help: entry.help, fallback: entry.default }
  if (entry.fields) yield* optionsIn(`${path}.fields`, entry.fields)
  if (entry.common) yield* optionsIn(`${path}.common`, entry.common)
  for (const [name, fields] of Object.entries(entry.variants ?? {}))
    yield* optionsIn(`${path}.variants[${JSON.stringify(name)}]`, fields)
}

function* optionsIn(path: string, table: object): Generator<Told> {
  for (const [key, entry] of Object.entries(table))
    if (isEntry(entry))
      yield* optionsOf(`${path}${/^[\w$]+$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`}`, entry)
}

let told: readonly Told[] = []
let shown: readonly string[] = []
let server: LanguageServer

beforeAll(async () => {
  const names = readdirSync(compiled, { recursive: true, encoding: "utf8" })
  const modules = names.filter((name) => name.endsWith("options.js") || /^environment\/.*\.js$/.test(name)).sort()
  const [imports, found]: [string[], Told[]] = [[], []]
  for (const [i, name] of modules.entries()) {
    const exported: Record<string, unknown> = await import(pathToFileURL(join(compiled, name)).href)
    const tables = Object.entries(exported).filter(([, value]) => isTable(value))
    if (tables.length === 0) continue
    imports.push(`import * as m${i} from ${JSON.stringify(join(dist, name))}`)
    for (const [key, table] of tables) found.push(...optionsIn(`m${i}.${key}`, table as object))
  }
  told = found
  const text = [...imports, ...told.map(({ path }) => `void ${path}`)].join("\n")
  const compilerOptions = { module: "nodenext", target: "es2022", lib: ["es2023", "esnext.disposable"], types: [] }
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["program.ts"] }))
  writeFileSync(file, text)
  server = await LanguageServer.start(folder)
  server.open(file, text)
  const hovers: string[] = []
  for (const [i, { path }] of told.entries())
    hovers.push(await server.hover(file, imports.length + i, `void ${path}`.length - (path.endsWith("]") ? 3 : 1)))
  shown = hovers
})
afterAll(() => {
  server?.stop()
  rmSync(folder, { recursive: true, force: true })
})

describe("descriptions of options in editors", () => {
  it("is the description of each", () => {
    const silent = told.filter(({ help }, i) => !shown[i]!.includes(help)).map(({ path }) => path)
    expect(silent).toEqual([])
    expect(told.length).toBeGreaterThan(1000)
    for (const help of [
      "Tasks (groups) per iteration.",
      "Maximum length of a completion in tokens.",
      "Sampling temperature.",
    ])
      expect(told.map((one) => one.help)).toContain(help)
  })

  it("has the default of each that is a number, a text or a switch", () => {
    const plain = told.flatMap(({ path, fallback }, i) =>
      ["number", "string", "boolean"].includes(typeof fallback) ? [{ path, fallback, said: shown[i]! }] : [],
    )
    const wrong = plain.filter(({ fallback, said }) => {
      const value = typeof fallback === "number" ? String(fallback) : JSON.stringify(fallback)
      return !said.includes(`Default: ${value}.`)
    })
    expect(wrong.map(({ path }) => path)).toEqual([])
    expect(plain.length).toBeGreaterThan(500)
  })
})
