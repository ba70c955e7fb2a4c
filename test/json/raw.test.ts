import { describe, expect, it } from "vitest"
import { RawJson, writeJson } from "../../src/json/raw.ts"

const badArgument = expect.objectContaining({ code: "BAD_ARGUMENT" })

describe("writeJson", () => {
  it("writes a RawJson unchanged at any place", () => {
    const text = '{ "id":2512292042121000001, "x": 20.0,"e": 1e-07, "b":1, "10": 1, "2" :1, "u":"\\u00e9" }'
    expect(writeJson(new RawJson(text))).toBe(text)
    expect(writeJson({ calls: [{ arguments: new RawJson(text) }], tools: null })).toBe(
      `{"calls":[{"arguments":${text}}],"tools":null}`,
    )
  })

  for (const value of [
    null,
    true,
    0,
    -0,
    20,
    -1.5,
    1e21,
    1e-7,
    5e-324,
    "",
    'é\n"\u2028\ud800 😀',
    [],
    {},
    [[1, "a"], { "10": [null], b: { "": 1 }, a: undefined }],
    Object.assign(Object.create(null), { bare: true }),
    new Date(0),
  ])
    it(`writes ${JSON.stringify(value)} as JSON.stringify does`, () =>
      expect(writeJson(value)).toBe(JSON.stringify(value)))

  it("writes a bigint as an integer", () => expect(writeJson([2n ** 64n, -1n])).toBe("[18446744073709551616,-1]"))

  for (const value of [Number.NaN, Infinity, -Infinity, undefined, () => 1, Symbol("s"), new Map([[1, 2]]), /x/])
    it(`rejects ${String(value)}, alone and in a list`, () => {
      expect(() => writeJson(value)).toThrow(badArgument)
      expect(() => writeJson([value])).toThrow(badArgument)
    })

  it("rejects a hole in a list", () => expect(() => writeJson(new Array(1))).toThrow(badArgument))
})

describe("RawJson", () => {
  for (const text of ["", " ", "{", "NaN", "[1,]", "{'a':1}", "1 2", '1,"role":"system"', "\u00a01"])
    it(`rejects ${JSON.stringify(text)}`, () => expect(() => new RawJson(text)).toThrow(badArgument))

  it("returns its value on request", () => expect(new RawJson(' {"a":[20.0]} ').parse()).toEqual({ a: [20] }))

  it("cannot be lost in JSON.stringify", () => expect(() => JSON.stringify([new RawJson("1.0")])).toThrow("writeJson"))
})
