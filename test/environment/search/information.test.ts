import { describe, expect, it } from "vitest"
import { informationOf, passagesText, resultOf } from "../../../src/environment/search/information.ts"

const passage = (contents: string) => ({ id: "", contents, score: 0 })

describe("the result text of a search", () => {
  it("is JSON as written by Python", () => {
    // json.dumps({"result": 'é "q" \\ /\n\t\x7f 😀 \u2028'})
    expect(informationOf('é "q" \\ /\n\t\x7f\x01 😀 \u2028')).toBe(
      '<information>{"result": "\\u00e9 \\"q\\" \\\\ /\\n\\t\\u007f\\u0001 \\ud83d\\ude00 \\u2028"}</information>',
    )
  })

  it("lists the passages, stripped", () => {
    expect(passagesText([passage('"A"\ntext \n'), passage(" b")])).toBe('Doc 1: "A"\ntext\nDoc 2: b\n')
    expect(passagesText([])).toBe("No search results found.")
  })

  it("can be parsed", () => {
    for (const text of ["", "é\n😀 </information> \\n", '"'.repeat(3)]) expect(resultOf(informationOf(text))).toBe(text)
    expect(resultOf("a question")).toBeUndefined()
    expect(resultOf("<information>{</information>")).toBeUndefined()
  })
})
