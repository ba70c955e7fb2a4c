import { describe, expect, it } from "vitest"
import { withDefaults } from "../../src/options/defaults.ts"
import { group, number, oneOf, required, scheduled, text, whole } from "../../src/options/field.ts"
import { readOptions } from "../../src/options/read.ts"

const table = {
  size: whole(3, "How many.", { least: 1 }),
  rate: scheduled(number(1, "How fast.", { least: 0 })),
  kind: oneOf("a", ["a", "b"], "Which."),
  place: text(undefined, "Where.", { otherwise: "here" }),
  name: required(text(undefined, "Whose.")),
  inner: group({ depth: number(1, "How deep.") }, "What is inside."),
}

describe("withDefaults", () => {
  it("makes a table of other defaults, and leaves the first as it was", () => {
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
    expect(other.place.otherwise).toBeUndefined()
    expect(other.size.problem(0)).toBe(table.size.problem(0))
    expect(readOptions("table", { name: "x" }, table)).toMatchObject({ size: 3, rate: 1 })
  })

  it.each<[object, RegExp]>([
    [{ size: 0 }, /^A default: size must be .*at least 1, not 0\.$/],
    [{ rate: { from: -1, to: 2 } }, /^A default: rate\.from must be .*at least 0, not -1\.$/],
    [{ sise: 4 }, /^A default of no option: "sise" is not known \(did you mean "size"\?\)\.$/],
    [{ inner: { depth: 2 } }, /^inner is a group of options; give its own keys their defaults\.$/],
  ])("refuses %j", (values, message) => {
    expect(() => withDefaults(table, values as { name: string })).toThrow(
      expect.objectContaining({ code: "BAD_ARGUMENT", message: expect.stringMatching(message) }),
    )
  })
})
