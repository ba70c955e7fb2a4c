import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Ajv2020 } from "ajv/dist/2020.js"
import { describe, expect, it } from "vitest"
import { parse } from "yaml"
import { configFields } from "../../src/cli/config/fields.ts"
import { renderConfig } from "../../src/cli/config/render.ts"
import { configSchema } from "../../src/cli/config/schema.ts"
import {
  boolean,
  choice,
  group,
  integer,
  limit,
  list,
  number,
  oneOf,
  required,
  scheduled,
  string,
} from "../../src/options/field.ts"
import { isModulePath } from "../../src/options/module-path.ts"
import { readTable } from "../../src/options/read.ts"
import type { Entry, OptionFields } from "../../src/options/table.ts"
import { modulePattern, tableSchema } from "../../src/options/table-schema.ts"

const root = join(import.meta.dirname, "../..")
const validator = (schema: object) =>
  new Ajv2020({
    strict: true,
    strictRequired: false,
    strictTypes: false,
    strictNumbers: false,
    allErrors: true,
  }).compile(schema)
const valid = validator(configSchema())
const least = "model: m\nenvironment: { name: sokoban }\n"

/** Whether the schema takes a configuration, and where it does not. */
const faults = (yaml: string) => (valid(parse(yaml)) ? [] : valid.errors!.map(({ instancePath }) => instancePath))

describe("the schema of configurations", () => {
  const shipped = readdirSync(join(root, "examples")).filter((name) => name.endsWith(".yaml"))

  it.each(shipped)("accepts examples/%s", (name) => {
    expect(faults(readFileSync(join(root, "examples", name), "utf8"))).toEqual([])
  })

  it("accepts every default", () => {
    const text = renderConfig().replace("environment:\n", "environment: {}\n")
    expect(
      faults(text.replace("# model:", "model: m").replace("environment: {}", "environment:\n  name: sokoban")),
    ).toEqual([])
  })

  it.each([
    "training: { estimator: hgpo, loss: ./mine.mjs }",
    "training: { estimator: { name: grpo, omega: 2 } }", // an option of gigpo, which stays where it is
    "training: { estimator: { use: ./mine.mjs, anything: [1] } }",
    "training: { loss: { clipHigh: { from: 0.3, to: 0.2, over: 10 }, clipDual: .inf } }",
    "training: { estimator: { similarity: { threshold: 0.9, autojunk: false } } }",
    "training: { rollout: { turnTimeout: .inf } }",
    "lora: { rank: 8, targetModules: [q_proj] }",
    "sft: { loss: dpo }",
  ])("takes %s", (text) => {
    expect(faults(`${least}${text}`)).toEqual([])
  })

  it.each([
    ["training: { itterations: 3 }", "/training"],
    ["training: { iterations: many }", "/training/iterations"],
    ["training: { groups: 0 }", "/training/groups"],
    ["training: { loss: { clipHigh: { from: 0.3 } } }", "/training/loss/clipHigh"],
    ["training: { estimator: { name: nowhere } }", "/training/estimator/name"],
    ["training: { estimator: { name: hgpo, gama: 1 } }", "/training/estimator"],
    ["lora: { alpha: 8 }", "/lora"],
    ["device: gpu", "/device"],
  ])("rejects %s", (text, place) => {
    expect(faults(`${least}${text}`)).toContain(place)
    expect(faults("environment: sokoban")).toContain("") // no model
  })

  it("rejects unknown options of an environment", () => {
    expect(faults("model: m\nenvironment: { name: sokoban, boxs: 2 }")).toContain("/environment")
  })

  it("explains every option, with its default", () => {
    const { properties, $defs } = configSchema() as {
      properties: Record<string, unknown>
      $defs: Record<string, unknown>
    }
    expect(properties.seed).toMatchObject({ type: "integer", minimum: 0, default: 0, description: expect.any(String) })
    const described = JSON.stringify([properties, $defs])
    const seen = new Set<Entry>()
    const check = (fields: OptionFields) => {
      for (const entry of Object.values(fields)) {
        if (seen.has(entry) || "codeOnly" in entry) continue
        seen.add(entry)
        expect(described).toContain(JSON.stringify(entry.help).slice(1, -1))
        if ("fields" in entry) check(entry.fields)
        else if ("variants" in entry) for (const variant of Object.values(entry.variants)) check(variant)
      }
    }
    check(configFields)
    expect(seen.size).toBeGreaterThan(400)
  })
})

describe("the schema of a table", () => {
  const shared = integer(1, "Shared.", { min: 1, max: 9 })
  const table = {
    ...{ whole: shared, number: number(0.5, "A share.", { above: 0, below: 1 }), flag: boolean(true, "A flag.") },
    ...{ mode: oneOf("a", ["a", "b"], "A mode."), names: list([], string(undefined, ""), "Names.") },
    ...{
      deadline: limit(Number.POSITIVE_INFINITY, "A deadline.", { above: 0 }),
      rate: scheduled(number(1, "A rate.", { min: 0 })),
    },
    part: group({ needed: required(string(undefined, "A text.")), again: shared }, "A part."),
    kind: choice("x", { x: { size: shared }, y: { other: boolean(false, "Another.") } }, "A kind.", {
      own: { validate: () => "is none" },
    }),
  }
  const check = validator(tableSchema(table))
  const part = { needed: "text" }
  const samples: readonly object[] = [
    { part },
    ...[1, 9, 0, 10, 1.5, "1", null].map((whole) => ({ part, whole })),
    ...[0.5, 0, 1, "0.5"].map((number) => ({ part, number })),
    ...[true, "true"].map((flag) => ({ part, flag })),
    ...["a", "c"].map((mode) => ({ part, mode })),
    ...[[], ["a"], [""], "a"].map((names) => ({ part, names })),
    ...[1, Number.POSITIVE_INFINITY, 0].map((deadline) => ({ part, deadline })),
    ...[1, -1, { from: 1, to: 0 }, { from: 1 }, { from: 1, to: -1 }, { from: 1, to: 0, shape: "odd" }].map((rate) => ({
      part,
      rate,
    })),
    ...[{}, { needed: " " }, { needed: "a", more: 1 }, { needed: "a", again: 0 }].map((part) => ({ part })),
    ...["x", "y", "z", { size: 2 }, { name: "y", other: true }, { name: "y", size: 2 }, { name: "y", third: 2 }].map(
      (kind) => ({ part, kind }),
    ),
    { part, more: 1 },
    {},
  ]

  it.each(samples.map((sample) => [JSON.stringify(sample), sample] as const))(
    "agrees with the table: %s",
    (_, sample) => {
      expect(check(sample)).toBe(readTable(sample, table, "file").complaints.length === 0)
    },
  )

  it("accepts paths of modules", () => {
    for (const path of ["./mine", "../a/b.mjs", "/a", "mine.ts", "mine", "gigpo", "a/b"])
      expect(new RegExp(modulePattern).test(path), path).toBe(isModulePath(path))
  })
})
