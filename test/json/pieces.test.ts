import { describe, expect, it } from "vitest"
import { JsonExcess, readJsonInPieces } from "../../src/json/pieces.ts"
import { atOnce, type Pieces } from "../../src/util/pace.ts"
import { Random } from "../../src/util/random.ts"
import { foreignJson } from "../foreign-json.ts"

const read = (text: string) => atOnce(readJsonInPieces(text, () => {}))

function outcome(parse: (text: string) => unknown, text: string): unknown {
  try {
    return { value: parse(text) }
  } catch (error) {
    return error instanceof SyntaxError ? "SyntaxError" : error
  }
}

function countPieces(pieces: Pieces<unknown>): number {
  let count = 1
  while (!pieces.next().done) count++
  return count
}

describe("a reader of JSON that can pause", () => {
  it("accepts the same texts as JSON.parse, with any character replaced", () => {
    const random = new Random(11)
    const pick = <T>(from: ArrayLike<T>) => from[random.below(from.length)]!
    let refused = 0
    for (let i = 0; i < 20_000; i++) {
      const { text } = foreignJson(random)
      const at = random.below(text.length + 1)
      const other = pick([
        '"',
        "\\",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "0",
        "-",
        ".",
        "e",
        " ",
        "\n",
        "\u0001",
        "t",
        "\ud800",
        "",
      ])
      const changed = text.slice(0, at) + other + text.slice(at + random.below(2))
      const expected = outcome(JSON.parse, changed)
      if (expected === "SyntaxError") refused++
      expect(outcome(read, changed), changed).toEqual(expected)
    }
    expect(refused).toBeGreaterThan(2000)
  })

  it("reads long strings with escapes at any place", () => {
    const random = new Random(12)
    const pieces = [
      "a",
      "\\\\",
      '\\"',
      "\\u00e9",
      "\\ud83d\\ude00",
      "😀",
      "\\n",
      "\\\\".repeat(3000),
      "b".repeat(4090),
      '\\"'.repeat(900),
    ]
    for (let i = 0; i < 300; i++) {
      const inside = Array.from({ length: 40 }, () => pieces[random.below(pieces.length)]!).join("")
      const text = `{"${inside}": ["${inside}", 1]}`
      expect(read(text)).toEqual(JSON.parse(text))
      expect(outcome(read, text.replace("\\u00e9", "\\u00g9"))).toEqual(
        outcome(JSON.parse, text.replace("\\u00e9", "\\u00g9")),
      )
      expect(outcome(read, text.slice(0, -5))).toBe("SyntaxError")
    }
  })

  it("keeps members with special names, and the last of equal ones", () => {
    const text = '{"__proto__": {"x": 1}, "a": 1, "constructor": 2, "a": [], "10": 0}'
    const value = read(text) as Record<string, unknown>
    expect(Object.entries(value)).toEqual(Object.entries(JSON.parse(text) as object))
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
  })

  it("pauses within each kind of long text", () => {
    for (const text of [
      `[${"{},".repeat(100_000)}{}]`,
      `["${"a".repeat(400_000)}"]`,
      `["${'\\"'.repeat(200_000)}"]`,
      `{"${"\\\\".repeat(200_000)}": 1}`,
      `[${"1,".repeat(200_000)}1]`,
      "[".repeat(200_000) + "]".repeat(200_000),
    ])
      expect(countPieces(readJsonInPieces(text, () => {}))).toBeGreaterThan(text.length / 10_000)
  })

  it("rejects text at the point where it exceeds a limit", () => {
    const limits = { deepest: 3, mostParts: 5 }
    const under = (text: string) => atOnce(readJsonInPieces(text, () => {}, limits))
    expect(under("[[[], {}, {}]]")).toEqual([[[], {}, {}]])
    expect(() => under("[[[[")).toThrow(new JsonExcess("is nested more than 3 levels deep"))
    expect(() => under("[[],[],[],[],[],")).toThrow(new JsonExcess("has more than 5 objects and lists"))
  })
})
