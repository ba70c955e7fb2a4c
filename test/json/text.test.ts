import { describe, expect, it } from "vitest"
import { RawJson, writeJson } from "../../src/json/raw.ts"
import { compactJson, memberTexts, parseJson, textOf } from "../../src/json/text.ts"
import { Random } from "../../src/util/random.ts"
import { foreignJson, type Written } from "../foreign-json.ts"

describe("JSON of others", () => {
  it("has the value of JSON.parse, and is written unchanged, whole or in parts", () => {
    const random = new Random(7)
    const check = (value: unknown, { text, parts }: Written) => {
      expect(value).toEqual(JSON.parse(text))
      if (!parts) return
      expect([textOf(value as object), writeJson(value)]).toEqual([text, text])
      const members = memberTexts(text)
      expect([...members]).toEqual([...parts].map(([key, part]) => [key, part.text]))
      for (const [key, part] of parts) check((value as Record<string, unknown>)[key], part)
    }
    for (let i = 0; i < 3000; i++) {
      const written = foreignJson(random)
      check(parseJson(` ${written.text}\n`), written)
    }
  })

  it("is written unchanged within other values, which are written as by JSON.stringify", () => {
    const foreign = parseJson('{"10": 20.0, "2": [1e-07], "id": 2512292042121000001}') as Record<string, unknown>
    expect(writeJson({ a: [foreign, foreign["2"]], b: new RawJson("1.0"), c: undefined })).toBe(
      '{"a":[{"10": 20.0, "2": [1e-07], "id": 2512292042121000001},[1e-07]],"b":1.0}',
    )
    const toJSON = () => ({ told: foreign["2"] })
    expect(writeJson([{ toJSON }])).toBe('[{"told":[1e-07]}]')
    expect(textOf({})).toBe(undefined)
  })

  it("is invalid if JSON.parse rejects it", () => {
    for (const text of ["", " ", "{", "NaN", "[1,]", "{'a': 1}", '{"a": 01}', '"\n"', "\ufeff{}"])
      expect(() => parseJson(text), text).toThrow(SyntaxError)
  })

  it("may be nested deeply, and have many parts", () => {
    const deep = `${'{"a":['.repeat(20_000)}1.0${"]}".repeat(20_000)}`
    expect(writeJson(parseJson(deep))).toBe(deep)
  })

  it("loses only white space and redundant escapes on request", () => {
    expect(compactJson('{ "b" : [ 1.0 ,\n-0, 1e-07 ], "\\u0061 \\/": "\\u00e9\\n\\"" }')).toBe(
      '{"b":[1.0,-0,1e-07],"a /":"é\\n\\""}',
    )
  })
})
