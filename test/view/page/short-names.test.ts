import { describe, expect, it } from "vitest"
import { oneLine, shortNames } from "../../../src/view/page/graph/short-names.ts"

describe("short names", () => {
  it("leave out what all begin with, up to a whole word", () => {
    expect(shortNames(["You are in room 1.", "You are in room 12.", "You are in rage."], 20)).toEqual([
      "room 1.",
      "room 12.",
      "rage.",
    ])
  })

  it("are cut, and never empty where the text is not", () => {
    expect(shortNames(["go", "go on"], 20)).toEqual(["go", "go on"])
    expect(shortNames(["the same", "the same"], 5)).toEqual(["the …", "the …"])
    expect(shortNames(["only"], 20)).toEqual(["only"])
    expect(shortNames([], 20)).toEqual([])
  })

  it("are one line that hides nothing", () => {
    expect(shortNames(["a\nb\u202e"], 20)).toEqual(["a b\\u{202e}"])
    expect(oneLine(`  a\t\nb${" x".repeat(1 << 19)}`, 6)).toBe("a b x…")
  })
})
