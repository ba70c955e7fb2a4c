import { describe, expect, it } from "vitest"
import { formatFloat, formatJson, reprBody } from "../../../src/environment/webshop/python-text.ts"

// Every expectation was printed by CPython.
describe("texts as written by Python", () => {
  it.each([
    [0, "0.0"],
    [100, "100.0"],
    [22.99, "22.99"],
    [1 / 3, "0.3333333333333333"],
    [0.1 + 0.2, "0.30000000000000004"],
    [1e-4, "0.0001"],
    [1.5e-5, "1.5e-05"],
    [1e-7, "1e-07"],
    [999999.5, "999999.5"],
    [1e15, "1000000000000000.0"],
    [1e16, "1e+16"],
    [1.2345678901234568e17, "1.2345678901234568e+17"],
    [1e22, "1e+22"],
    [5e-324, "5e-324"],
  ])("prints the float %d", (value, text) => expect(formatFloat(value)).toBe(text))

  it("writes JSON that is safe in HTML, keys sorted", () => {
    const entries = new Map([
      ["b", "20''x"],
      ["a", '<é> & \x7f😀 "q" \\'],
    ])
    expect(formatJson(entries)).toBe(
      String.raw`{"a": "\u003c\u00e9\u003e \u0026 \u007f\ud83d\ude00 \"q\" \\", "b": "20\u0027\u0027x"}`,
    )
    expect(formatJson(new Map())).toBe("{}")
  })

  it.each([
    ["navy\xa0blue", String.raw`navy\xa0blue`],
    ["a\tb", String.raw`a\tb`],
    ["\u200bx", String.raw`\u200bx`],
    ["\u{e0001}z", String.raw`\U000e0001z`],
    ["café", "café"],
    ["\x7f", String.raw`\x7f`],
    ["\u3000w", String.raw`\u3000w`],
    ["\ue000", String.raw`\ue000`],
  ])("escapes what it would not print of %j", (text, printed) => expect(reprBody(text)).toBe(printed))
})
