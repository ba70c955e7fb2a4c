import { describe, expect, it } from "vitest"
import { strip, stripCharacter } from "../../src/environment/python-text.ts"

// Every expectation was printed by CPython.
describe("texts as Python strips them", () => {
  it.each([
    ["\x1c a\x85", "a"],
    ["\ufeff a \u3000", "\ufeff a"],
    ["\u200b a\xa0", "\u200b a"],
    ["\x0b\x0c", ""],
    ["a\u180e", "a\u180e"],
    ["", ""],
  ])("strips %j", (text, stripped) => expect(strip(text)).toBe(stripped))

  it("strips one character", () => expect(stripCharacter("..a. b...", ".")).toBe("a. b"))
})
