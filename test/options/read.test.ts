import { describe, expect, expectTypeOf, it } from "vitest"
import * as fields from "../../src/options/field.ts"
import { fixed } from "../../src/options/fixed.ts"
import { readOptions, readTable } from "../../src/options/read.ts"
import type { Scheduled } from "../../src/options/schedule.ts"
import type { OptionField, OptionsOf, ResolvedOf } from "../../src/options/table.ts"

const { abortSignal, callback, choice, field, boolean, group, limit, list, number, oneOf } = fields
const { optionalGroup, orObject, required, scheduled, string, integer } = fields

interface Tool {
  readonly cut: (what: string) => string
}

const table = {
  count: integer(3, "How many.", { min: 1 }),
  few: integer(2, "How few.", { min: 1, max: 4 }),
  share: number(0.5, "How much.", { above: 0, max: 1 }),
  decay: number(0.9, "How slowly.", { min: 0, below: 1 }),
  any: number(-1, "Any number."),
  width: number(undefined, "How wide.", { above: 0, defaultText: "as wide as it is" }),
  most: limit(3, "Where it ends.", { above: 1 }),
  loud: boolean(false, "Whether it is heard."),
  kind: oneOf("round", ["round", "square", 4], "What it looks like."),
  name: string("it", "What it is called."),
  names: list(["a"] as string[], string(undefined, "One."), "What they are called."),
  odd: field(1, "An odd number.", (value) => (Number(value) % 2 === 1 ? undefined : "must be odd")),
  told: callback(undefined as (() => void) | undefined, "Told when it is done."),
  signal: abortSignal("Stops it."),
  rate: scheduled(number(0.1, "How fast.", { min: 0, max: 1 })),
  likeness: orObject(number(undefined, "How alike."), { least: required(number(undefined, "At least.")) }),
  inner: group(
    { depth: integer(1, "How deep.", { min: 0 }), rate: scheduled(limit(2, "A limit.", { above: 0 })) },
    "Within.",
  ),
  extra: optionalGroup({ rank: required(integer(undefined, "Its rank.", { min: 1 })) }, "On top.", "nothing"),
  tool: choice(
    "saw",
    { saw: { teeth: integer(20, "Teeth.", { min: 1 }) }, knife: { sharp: boolean(true, "Whether it cuts.") } },
    "What it is cut with.",
    {
      common: { force: number(1, "How hard.") },
      own: {
        validate: (value) =>
          typeof (value as Partial<Tool> | null)?.cut === "function" ? undefined : "must be a tool: an object with cut",
      } as import("../../src/options/table.ts").CustomValue<Tool>,
    },
  ),
}

const defaults = {
  count: 3,
  few: 2,
  share: 0.5,
  decay: 0.9,
  any: -1,
  most: 3,
  loud: false,
  kind: "round",
  name: "it",
  names: ["a"],
  odd: 1,
  rate: 0.1,
  inner: { depth: 1, rate: 2 },
  tool: { name: "saw", teeth: 20, force: 1 },
}

describe("options", () => {
  it("left out or undefined are the defaults, in groups too", () => {
    expect(readOptions("it", undefined, table)).toEqual(defaults)
    const empty = Object.fromEntries(Object.keys(table).map((key) => [key, undefined]))
    expect(readOptions("it", empty, table)).toEqual(defaults)
    expect(readOptions("it", { inner: { depth: undefined }, tool: { name: undefined } }, table)).toEqual(defaults)
  })

  it("that are set are kept", () => {
    const given = {
      ...{ count: 1, few: 4, share: 1, decay: 0, any: 1e300, width: 2, most: Number.POSITIVE_INFINITY, loud: true },
      ...{ kind: 4, name: "x", names: ["b", "c"], odd: 3, told: () => {}, signal: AbortSignal.abort() },
      ...{ rate: 0, likeness: { least: 2 }, inner: { depth: 0, rate: 1 }, extra: { rank: 2 } },
      tool: { name: "knife", sharp: false, force: 2 },
    }
    expect(readOptions("it", given, table)).toEqual(given)
  })

  it.each<[object, string]>([
    [{ count: "1" }, 'count must be a number, not "1".'],
    [{ count: 1.5 }, "count must be an integer, not 1.5."],
    [{ count: 2 ** 53 }, "count must be an integer, not 9007199254740992."],
    [{ count: 0 }, "count must be at least 1, not 0."],
    [{ count: null }, "count must be a number, not empty."],
    [{ few: 5 }, "few must be an integer from 1 to 4, not 5."],
    [{ few: "x" }, 'few must be an integer from 1 to 4, not "x".'],
    [{ share: 0 }, "share must be above 0 and at most 1, not 0."],
    [{ decay: 1 }, "decay must be at least 0 and below 1, not 1."],
    [{ any: Number.NaN }, "any must be a number, not NaN."],
    [{ any: Number.POSITIVE_INFINITY }, "any must be a finite number, not Infinity."],
    [{ most: 1 }, "most must be a number above 1, or Infinity (.inf in YAML) to turn it off, not 1."],
    [{ most: Number.NaN }, "most must be a number above 1, or Infinity (.inf in YAML) to turn it off, not NaN."],
    [{ loud: "yes" }, 'loud must be true or false, not "yes".'],
    [{ kind: "oval" }, 'kind must be "round" or "square" or 4, not "oval".'],
    [{ name: " " }, 'name must be a non-empty string, not " ".'],
    [{ names: "a" }, 'names must be a list, not "a".'],
    [{ names: ["a", ""] }, 'names must be a list; each entry must be a non-empty string, not ["a",""].'],
    [{ odd: 2 }, "odd must be odd, not 2."],
    [{ told: 1 }, "told must be a function, not 1."],
    [{ signal: {} }, "signal must be an AbortSignal, not {}."],
    [{ rate: 2 }, "rate must be a number from 0 to 1, not 2."],
    [{ rate: { from: 0.5 } }, "rate.to is missing. Last value."],
    [{ rate: { from: 0.5, to: 3 } }, "rate.to must be a number from 0 to 1, not 3."],
    [{ rate: { from: -1, to: 1 } }, "rate.from must be a number from 0 to 1, not -1."],
    [{ rate: { from: 0, to: 1, over: 0 } }, "rate.over must be at least 1, not 0."],
    [
      { rate: { from: 0, to: 1, shape: "bent" } },
      'rate.shape must be "linear" or "cosine" or "power" or "cubic", not "bent".',
    ],
    [{ rate: { from: 0, to: 1, ofer: 2 } }, "rate.ofer is not an option; did you mean rate.over?"],
    [{ likeness: "x" }, 'likeness must be a number, or { least }, not "x".'],
    [{ likeness: {} }, "likeness.least is missing. At least."],
    [{ inner: 3 }, "inner must be a group of keys, not 3."],
    [{ inner: [] }, "inner must be a group of keys, not []."],
    [{ inner: null }, "inner must be a group of keys, not empty."],
    [{ inner: { depth: -1 } }, "inner.depth must be at least 0, not -1."],
    [{ inner: { rate: { from: 1, to: 0 } } }, "inner.rate.to must be a number above 0, or Infinity"],
    [
      { inner: { rate: { from: 1, to: Number.POSITIVE_INFINITY } } },
      "inner.rate.to must be a finite number, not Infinity.",
    ],
    [{ extra: {} }, "extra.rank is missing. Its rank."],
    [{ cuont: 1 }, "cuont is not an option; did you mean count?"],
    [{ depths: 1 }, "depths is not an option; did you mean inner.depth?"],
    [{ zzz: 1 }, "zzz is not an option; known: count, few, share,"],
    [JSON.parse('{ "__proto__": 1 }'), "__proto__ is not an option; known:"],
    [{ constructor: 1 }, "constructor is not an option; known:"],
    [{ tool: "saw" }, 'tool must be a group of keys, not "saw".'],
    [{ tool: { name: "axe" } }, 'tool.name must be "saw" or "knife", not "axe".'],
    [{ tool: { name: "Knive" } }, 'tool.name must be "saw" or "knife", not "Knive". Did you mean knife?'],
    [{ tool: { name: "constructor" } }, 'tool.name must be "saw" or "knife", not "constructor".'],
    [{ tool: { teeht: 2 } }, "tool.teeht is not an option; did you mean tool.teeth?"],
    [{ tool: { zzzz: 2 } }, "tool.zzzz is not an option; known: name, use, teeth, force."],
    [{ tool: { use: 3 } }, "tool.use must be a tool: an object with cut, not 3."],
    [{ tool: { use: { cut: () => "" }, name: "saw" } }, "tool has both name and use; give one of them."],
    [{ tool: { use: { cut: () => "" }, teeth: 3 } }, "tool.teeth is not an option; known: force."],
    [{ tool: { use: { cut: () => "" }, force: "x" } }, 'tool.force must be a number, not "x".'],
  ])("%j are rejected", (given, message) => {
    expect(() => readOptions("it", given, table)).toThrow(
      expect.objectContaining({ code: "BAD_ARGUMENT", message: expect.stringContaining(`it: ${message}`) }),
    )
  })

  it("are rejected with all errors at once, by the given code", () => {
    const given = { few: 9, zzz: 1, inner: { depth: "x" } }
    expect(() => readOptions("it", given, table, "BAD_CONFIG")).toThrow(
      expect.objectContaining({
        code: "BAD_CONFIG",
        message: expect.stringMatching(
          /^it has 3 mistakes\.\nit: few must be .*\nit: inner\.depth must be a number, not "x"\.\nit: zzz is not an option/,
        ),
      }),
    )
    for (const wrong of [3, "x", [], null])
      expect(() => readOptions("it", wrong, table)).toThrow("it: options must be an object.")
  })

  it("for a custom object: passed directly, or by `use` with its options", () => {
    const tool = { cut: (what: string) => what }
    expect(readOptions("it", { tool }, table).tool).toEqual({ use: tool, force: 1 })
    expect(readOptions("it", { tool: { use: tool, force: 3 } }, table).tool).toEqual({ use: tool, force: 3 })
  })

  it("in a file contain the path of a module, whose options are not changed", () => {
    const read = (tool: object) => readTable({ tool }, table, "file")
    const given = { use: "./tool.mjs", force: 2, size: [1], force2: 3 }
    expect(read(given)).toMatchObject({ value: { tool: given }, complaints: [] })
    for (const use of [3, "", { cut: () => "" }])
      expect(read({ use }).complaints).toEqual([
        { path: ["tool", "use"], text: expect.stringMatching(/^tool\.use must be the path of a module, not/) },
      ])
  })

  it("that are functions of the progress are checked when they are evaluated", () => {
    const { rate } = readOptions("it", { rate: ({ iteration }: { iteration: number }) => iteration / 2 }, table)
    const at = rate as (progress: object) => number
    expect(at({ iteration: 1, iterations: 5 })).toBe(0.5)
    expect(() => at({ iteration: 3, iterations: 5 })).toThrow(
      expect.objectContaining({
        code: "BAD_ARGUMENT",
        message: "rate must be a number from 0 to 1; its schedule returned 1.5 in iteration 4 of 5.",
      }),
    )
  })

  it("of a table without schedules accept only numbers", () => {
    const plain = fixed({ rate: table.rate, count: table.count })
    expect(readOptions("it", { rate: 1 }, plain)).toEqual({ rate: 1, count: 3 })
    for (const rate of [{ from: 0, to: 1 }, () => 1])
      expect(() => readOptions("it", { rate }, plain)).toThrow(/rate must be a number from 0 to 1, not/)
    expectTypeOf<ResolvedOf<typeof plain>["rate"]>().toEqualTypeOf<number>()
  })
})

describe("a table", () => {
  it.each<[() => unknown, string]>([
    [() => number(5, "How much.", { max: 1 }), 'The default of the option "How much." must be at most 1, not 5.'],
    [() => number("x" as never, "How much."), 'The default of the option "How much." must be a number, not "x".'],
    [() => scheduled(integer(0.5, "How many.")), 'The default of the option "How many." must be an integer, not 0.5.'],
    [
      () => integer(5, "How many.", { maximum: 9 } as never),
      'The option "How many." has an unknown bound: "maximum" is not known (known: min, max, above, below, defaultText).',
    ],
    [() => oneOf("c" as "a", ["a", "b"], "Which."), 'The default of the option "Which." must be "a" or "b", not "c".'],
  ])("rejects a default that its own check rejects (%s)", (make, message) => {
    expect(make).toThrow(expect.objectContaining({ code: "BAD_ARGUMENT", message }))
  })

  it("without options reports any that is set", () => {
    expect(() => readOptions("it", { size: 1 }, {})).toThrow(/^it: size is not an option; there are none\.$/)
    const bare = choice("a", { a: {} }, "What.", { own: table.tool.own })
    expect(() => readOptions("it", { bare: { use: { cut: () => "" }, size: 1 } }, { bare })).toThrow(
      /^it: bare.size is not an option; bare takes no options besides use\.$/,
    )
  })
})

describe("a choice by name", () => {
  it("omits options of other variants", () => {
    const { tool } = readOptions("it", { tool: { name: "saw", teeth: 3, sharp: true } }, { tool: table.tool })
    expect(tool).toMatchObject({ name: "saw", teeth: 3 })
    expect(tool).not.toHaveProperty("sharp")
    expect(() => readOptions("it", { tool: { name: "saw", sharp: "very" } }, { tool: table.tool })).toThrow(
      /^it: tool.sharp must be true or false, not "very"\.$/,
    )
    expect(() => readOptions("it", { tool: { sharp: "very" } }, { tool: { ...table.tool, asGiven: true } })).toThrow(
      /tool.sharp is an option of knife, not of saw/,
    )
  })
})

describe("the types of a table", () => {
  type Given = OptionsOf<typeof table>
  type Read = ResolvedOf<typeof table>

  it("can all be omitted except required ones", () => {
    expectTypeOf<Given["count"]>().toEqualTypeOf<number | undefined>()
    expectTypeOf<Given["kind"]>().toEqualTypeOf<"round" | "square" | 4 | undefined>()
    expectTypeOf<Given["rate"]>().toEqualTypeOf<Scheduled | undefined>()
    expectTypeOf<NonNullable<Given["extra"]>["rank"]>().toEqualTypeOf<number>()
    expectTypeOf<{ count: undefined; inner: { depth: undefined } }>().toExtend<Given>()
    expectTypeOf<{ extra: object }>().not.toExtend<Given>()
    expectTypeOf<{ count: string }>().not.toExtend<Given>()
    expectTypeOf<{ tool: Tool }>().toExtend<Given>()
    expectTypeOf<{ tool: { use: Tool; force: 2 } }>().toExtend<Given>()
    expectTypeOf<{ tool: { name: "knife"; sharp: true } }>().toExtend<Given>()
    expectTypeOf<{ tool: { name: "axe" } }>().not.toExtend<Given>()
  })

  it("have the defaults filled in", () => {
    expectTypeOf<Read["count"]>().toEqualTypeOf<number>()
    expectTypeOf<Read["width"]>().toEqualTypeOf<number | undefined>()
    expectTypeOf<Read["inner"]["depth"]>().toEqualTypeOf<number>()
    expectTypeOf<Read["tool"]["force"]>().toEqualTypeOf<number>()
    expectTypeOf<Read["extra"]>().toEqualTypeOf<{ readonly rank: number } | undefined>()
  })

  it("show the description of an option", () => {
    expectTypeOf(table.count).toEqualTypeOf<OptionField<number, "How many.">>()
    expectTypeOf(table.inner.help).toEqualTypeOf<"Within.">()
  })
})
