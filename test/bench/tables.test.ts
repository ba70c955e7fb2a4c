import { existsSync } from "node:fs"
import { resolve } from "node:path"
import { describe, expect, it } from "vitest"
import { loadConfig } from "../../src/cli/config/resolve.ts"

type Settings = Readonly<Record<string, unknown>>
interface Variant {
  readonly name: string
  readonly set: Settings
  readonly clone?: { readonly set: Settings }
}
interface Table {
  readonly worlds: readonly { readonly name: string; readonly config: string; readonly set: Settings }[]
  readonly variants: readonly Variant[]
  readonly against?: string
}
interface Cells {
  cellsOf(table: Table, places: { readonly runs: string }): unknown[]
  nameOf(cell: unknown): string
  sets(...tables: (Settings | undefined)[]): string[]
}

const load = async <Module>(file: string): Promise<Module> => await import(resolve("bench/paper", file))
const missing = !existsSync("dist/index.js")
const { tables } = await load<{ tables: Record<string, Table> }>("tables.mjs")

describe.skipIf(missing).each(Object.entries(tables))("the table %s of bench:paper", (_, table) => {
  it("has settings that gigpo takes", async () => {
    const { sets } = await load<Cells>("cells.mjs")
    for (const world of table.worlds)
      for (const variant of table.variants)
        await loadConfig(world.config, ["model=m", ...sets(world.set, variant.clone?.set, variant.set)])
  })

  it("names no two runs alike, and compares with one of its rows", async () => {
    const { cellsOf, nameOf } = await load<Cells>("cells.mjs")
    const names = cellsOf(table, { runs: "runs" }).map(nameOf)
    expect(new Set(names).size).toBe(names.length)
    if (table.against) expect(table.variants.map(({ name }) => name)).toContain(table.against)
  })
})

it.skipIf(missing)("calls a run of two tables alike only where its settings are", async () => {
  const { cellsOf, nameOf, sets } = await load<Cells>("cells.mjs")
  const found = new Map<string, unknown>()
  for (const table of Object.values(tables))
    for (const cell of cellsOf(table, { runs: "runs" }) as { world: Table["worlds"][number]; variant: Variant }[]) {
      const { world, variant } = cell
      const config = await loadConfig(world.config, ["model=m", ...sets(world.set, variant.clone?.set, variant.set)])
      expect(found.get(nameOf(cell)) ?? config, nameOf(cell)).toEqual(config)
      found.set(nameOf(cell), config)
    }
})
