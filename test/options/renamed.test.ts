import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Command } from "commander"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { define } from "../../src/cli/commands.ts"
import { configFields } from "../../src/cli/config/fields.ts"
import { program } from "../../src/cli/global-options.ts"
import { checkArguments } from "../../src/options/arguments.ts"
import { choice, group, integer, oneOf } from "../../src/options/field.ts"
import { readOptions, readTable } from "../../src/options/read.ts"
import { renamed, renamedKey } from "../../src/options/renamed.ts"
import type { Entry, OptionFields } from "../../src/options/table.ts"
import { sftFields } from "../../src/sft/options.ts"
import { trainFields } from "../../src/training/options.ts"

type Names = Record<string, string>
const [options, values] = [renamed.options as Names, renamed.values as Names]

const table: OptionFields = {
  guards: group({ minGroupSize: integer(1, "Smallest group."), maxAge: integer(9, "Oldest.") }, "Guards."),
  importance: group({ maxLag: integer(9, "Oldest.") }, "Importance."),
  unit: oneOf("turn", ["turn", "trajectory"], "Unit."),
  loss: choice("gspo", { gspo: { clip: integer(1, "Clip.") } }, "Loss.", { own: { validate: () => "is none" } }),
}
const complaints = (given: object) => readTable(given, table, "file").complaints.map(({ text }) => text)

describe("a name of an earlier version", () => {
  const kept = [{ ...options }, { ...values }] as const
  beforeEach(() => {
    Object.assign(options, { leastGroupSize: "minGroupSize", mostAge: "maxAge", "importance.mostAge": "maxLag" })
    Object.assign(options, { clips: "clip", sizes: "nowhere", leastSize: "guards.minGroupSize" })
    Object.assign(values, { "unit=span": "turn", "loss.name=sequence": "gspo", "unit=row": "episode" })
  })
  afterEach(() => {
    for (const [index, names] of [options, values].entries()) {
      for (const key of Object.keys(names)) delete names[key]
      Object.assign(names, kept[index])
    }
  })

  it("is rejected with the new name", () => {
    expect(complaints({ guards: { leastGroupSize: 3 } })).toEqual([
      "guards.leastGroupSize was renamed to guards.minGroupSize.",
    ])
    expect(complaints({ leastSize: 3 })).toEqual(["leastSize was renamed to guards.minGroupSize."])
    expect(complaints({ loss: { clips: 3 } })).toEqual(["loss.clips was renamed to loss.clip."])
  })

  it("can have another one in another group", () => {
    expect(complaints({ guards: { mostAge: 3 } })).toEqual(["guards.mostAge was renamed to guards.maxAge."])
    expect(complaints({ importance: { mostAge: 3 } })).toEqual(["importance.mostAge was renamed to importance.maxLag."])
  })

  it("is not explained if the new name is unknown, too", () => {
    expect(complaints({ sizes: 3 })[0]).toMatch(/^sizes is not an option; /)
    expect(complaints({ unit: "row" })).toEqual(['unit must be "turn" or "trajectory", not "row".'])
  })

  it("of a value or a choice is rejected with the new one", () => {
    expect(complaints({ unit: "span" })).toEqual([
      'unit must be "turn" or "trajectory", not "span". "span" was renamed to "turn".',
    ])
    expect(complaints({ loss: "sequence" })).toEqual(['loss.name "sequence" was renamed to gspo.'])
  })

  it("is rejected among arguments of functions", () => {
    expect(() => checkArguments("make", { leastGroupSize: 1 }, { minGroupSize: true })).toThrow(
      'make: "leastGroupSize" was renamed to "minGroupSize".',
    )
  })

  it("of a part of a configuration is rejected by the function of that part", () => {
    expect(() => readOptions("sft", { stepsPerUpdate: 1 }, sftFields)).toThrow(
      "sft: stepsPerUpdate was renamed to completionsPerUpdate.",
    )
    expect(() => readOptions("train", { turns: {} }, trainFields)).toThrow("train: turns was renamed to rolloutHooks.")
  })
})

/** Every group of options that a configuration can have, with the name of the group. */
function* groups(fields: OptionFields, name = ""): Generator<readonly [name: string, fields: OptionFields]> {
  yield [name, fields]
  for (const [key, entry] of Object.entries(fields)) yield* groupsIn(entry, key)
}

function* groupsIn(entry: Entry, key: string): ReturnType<typeof groups> {
  if ("fields" in entry) yield* groups(entry.fields, key)
  else if ("variants" in entry)
    for (const fields of Object.values(entry.variants)) yield* groups({ ...fields, ...entry.common }, key)
}

describe("an old name that is an option of another variant", () => {
  const read = (whiten: unknown) => readOptions("train", { estimator: { name: "vpr", whiten } as never }, trainFields)

  it("is rejected with the new name if that variant rejects the value", () => {
    expect(() => read("batch")).toThrow("train: estimator.whiten was renamed to estimator.stdScope.")
    expect(read(true).estimator).toMatchObject({ name: "vpr", stdScope: "group" })
  })
})

describe("the table of renamed names", () => {
  const all = [...groups(configFields)]
  const split = (old: string) => (old.includes(".") ? old.split(".") : [undefined, old]) as [string | undefined, string]

  it("has new names that some group knows, and old ones that it does not", () => {
    for (const [old, to] of Object.entries(renamed.options)) {
      const [within, name] = split(old)
      const found = all.filter(
        ([group, fields]) => (within ?? group) === group && Object.hasOwn(fields, to.split(".")[0]!),
      )
      expect(found.length, `no group of a configuration has ${to}, the new name of ${old}`).toBeGreaterThan(0)
      expect(
        found.filter(([, fields]) => Object.hasOwn(fields, name)).map(([group]) => group),
        old,
      ).toEqual([])
    }
  })

  it("has new values that the option accepts, and old ones that it does not", () => {
    for (const [old, to] of Object.entries(renamed.values)) {
      const [option = "", value] = old.split("=")
      const [within, name] = split(option)
      const takes = (entry: Entry | undefined, one: unknown) =>
        entry !== undefined && "validate" in entry && entry.validate(one) === undefined
      const found =
        name === "name"
          ? all.flatMap(([, fields]) => {
              const entry = fields[within ?? ""]
              return entry && "variants" in entry ? [Object.keys(entry.variants)] : []
            })
          : all
              .filter(([group, fields]) => (within ?? group) === group && takes(fields[name], to))
              .map(([, fields]) => (takes(fields[name], value) ? [to, value] : [to]))
      expect(found.filter((names) => names.includes(to)).length, old).toBeGreaterThan(0)
      expect(
        found.filter((names) => names.includes(value)),
        old,
      ).toEqual([])
    }
  })

  it("has no name that is old and new at once", () => {
    for (const names of Object.values(renamed))
      expect(Object.values(names).filter((to) => Object.hasOwn(names, to))).toEqual([])
  })

  it("has commands that exist, and old ones that do not", async () => {
    const exists = async (words: string) => {
      const [name = "", sub] = words.split(" ")
      const command = new Command(name)
      const isCommand = await define(command)
      return sub === undefined ? isCommand : command.commands.some((one) => one.name() === sub)
    }
    for (const [old, to] of Object.entries(renamed.commands))
      expect([await exists(old), await exists(to)], old).toEqual([false, true])
  })

  it("has options of commands that each command has, and rejects the old ones with them", async () => {
    for (const [name, flags] of Object.entries(renamed.flags)) {
      const command = name === "gigpo" ? program : new Command(name)
      if (command !== program) expect(await define(command), name).toBe(true)
      const shown = command.options.filter(({ hidden }) => !hidden).map(({ long }) => long)
      for (const [old, to] of Object.entries(flags)) {
        expect([shown.includes(old), shown.includes(to)], `${name} ${old}`).toEqual([false, true])
        expect(() => command.parse(command === program ? [old, "doctor"] : [old], { from: "user" })).toThrow(
          `${old} was renamed to ${to}.`,
        )
      }
    }
  })

  it("has keys of files, of which the first old one is named", () => {
    const digests = { world: "", prompt: "", panel: "" }
    expect(renamedKey({ panel: 1, digests })).toBe('"panel" was renamed to "benchmark"')
    expect(renamedKey({ benchmark: 1, digests })).toBe('"digests.panel" was renamed to "digests.benchmark"')
    expect(renamedKey({ benchmark: 1, digests: { environment: "", prompt: "", benchmark: "" } })).toBeUndefined()
    for (const none of [undefined, null, 7, "panel", []]) expect(renamedKey(none)).toBeUndefined()
  })

  it("has exports that some entry point has, and old ones that none has", () => {
    const names = readFileSync(join(import.meta.dirname, "../entries/names.txt"), "utf8").split(/\s+/)
    for (const [old, to] of Object.entries(renamed.exports))
      expect([names.includes(old), names.includes(to)], old).toEqual([false, true])
  })

  it("has error codes that docs/errors.md lists, and old ones that it does not", () => {
    const page = readFileSync(join(import.meta.dirname, "../../docs/errors.md"), "utf8")
    for (const [old, to] of Object.entries(renamed.errors))
      expect([page.includes(old), page.includes(`| \`${to}\` |`)], old).toEqual([false, true])
  })

  it("has no metric that a page still names", () => {
    const docs = join(import.meta.dirname, "../../docs")
    const pages = readdirSync(docs).filter((name) => name.endsWith(".md"))
    const text = [...pages.map((name) => join(docs, name)), join(docs, "../README.md")]
      .map((path) => readFileSync(path, "utf8"))
      .join("\n")
    expect(Object.keys(renamed.metrics).filter((old) => text.includes(`\`${old}\``))).toEqual([])
  })
})
