import { describe, expect, it } from "vitest"
import { withDefaults } from "../../src/options/defaults.ts"
import { group, integer, number, oneOf, required, scheduled, string } from "../../src/options/field.ts"
import { readOptions } from "../../src/options/read.ts"

const table = {
  size: integer(3, "How many.", { min: 1 }),
  rate: scheduled(number(1, "How fast.", { min: 0 })),
  kind: oneOf("a", ["a", "b"], "Which."),
  place: string(undefined, "Where.", { defaultText: "here" }),
  name: required(string(undefined, "Whose.")),
  inner: group({ depth: number(1, "How deep.") }, "What is inside."),
}

describe("withDefaults", () => {
  it("creates a table with other defaults, without changing the original", () => {
    const other = withDefaults(table, { size: 5, rate: { from: 1, to: 2 }, place: "there", kind: undefined, name: "n" })
    const found = readOptions("other", {}, other)
    expect(found).toEqual({
      size: 5,
      rate: { from: 1, to: 2 },
      kind: "a",
      place: "there",
      name: "n",
      inner: { depth: 1 },
    })
    expect(other.place.defaultText).toBeUndefined()
    expect(other.size.validate(0)).toBe(table.size.validate(0))
    expect(readOptions("table", { name: "x" }, table)).toMatchObject({ size: 3, rate: 1 })
  })

  it.each<[object, RegExp]>([
    [{ size: 0 }, /^A default: size must be .*at least 1, not 0\.$/],
    [{ rate: { from: -1, to: 2 } }, /^A default: rate\.from must be .*at least 0, not -1\.$/],
    [{ sise: 4 }, /^A default of an unknown option: "sise" is not known \(did you mean "size"\?\)\.$/],
    [{ inner: { depth: 2 } }, /^inner is a group of options; set the defaults of its keys instead\.$/],
  ])("rejects %j", (values, message) => {
    expect(() => withDefaults(table, values as { name: string })).toThrow(
      expect.objectContaining({ code: "BAD_ARGUMENT", message: expect.stringMatching(message) }),
    )
  })
})
