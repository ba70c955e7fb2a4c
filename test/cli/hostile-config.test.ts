import { expect, it } from "vitest"
import { parseConfigDocument } from "../../src/cli/config/document.ts"

// YAML that was written to exhaust the parser. It is rejected with a sentence, and what is large but harmless is read.

const parsed = (text: string) => parseConfigDocument(text, "config.yaml").document.toJS()

it.each<[string, string]>([
  ["groups in braces", "{a: ".repeat(20_000)],
  ["lists in brackets", "[".repeat(20_000)],
  ["closed lists", `a: ${"[".repeat(2000)}${"]".repeat(2000)}`],
  ["lists by dashes", `${"- ".repeat(20_000)}1`],
  ["keys by question marks", `${"? ".repeat(20_000)}1`],
  ["groups by indentation", Array.from({ length: 2000 }, (_, i) => `${" ".repeat(i)}a:`).join("\n")],
])("%s in one another by the thousand are rejected", (_, text) => {
  expect(() => parsed(text)).toThrow(
    expect.objectContaining({ code: "BAD_CONFIG", message: expect.stringMatching(/nested more than 100 levels deep/) }),
  )
})

it("a few levels are read, in every style", () => {
  expect(parsed("a: {b: [{c: 1}]}\nd:\n  e:\n    - f: 2\n")).toEqual({ a: { b: [{ c: 1 }] }, d: { e: [{ f: 2 }] } })
})

it("thousands of keys are read, and a repeated one is named by its line", () => {
  const text = Array.from({ length: 3000 }, (_, i) => `k${i}: ${i}`).join("\n")
  expect(Object.keys(parsed(text))).toHaveLength(3000)
  const twice = expect.objectContaining({ code: "BAD_CONFIG", message: "config.yaml, line 3: Map keys must be unique" })
  expect(() => parsed("a: 1\nb:\n  c: 1\n".replace("c", "c: 1\n  c").replace("a: 1\n", ""))).toThrow(twice)
  expect(() => parsed("a: {b: [{c: 1}]}\nd: 1\na: 2\n")).toThrow(twice)
})

it("aliases that multiply are rejected", () => {
  const levels = Array.from({ length: 9 }, (_, i) => `a${i + 1}: &a${i + 1} [${Array(9).fill(`*a${i}`).join(",")}]`)
  expect(() => parsed(["a0: &a0 [x]", ...levels].join("\n"))).toThrow()
})

it("of tokens that can stand nowhere the first is named, and no more are read", () => {
  const cause = (text: string) => {
    try {
      parsed(text)
    } catch (error) {
      return error as Error
    }
    throw new Error("It was read.")
  }
  const { message: said, cause: made } = cause(`a: 1\n${"]".repeat(100_000)}`)
  expect(said).toContain("config.yaml, line 2: Unexpected flow-seq-end token")
  expect(said.length).toBeLessThan(150)
  expect(made).toBeUndefined() // the parser, which would make an error of each, was not asked
})
