import { existsSync, readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { isRight, lastAnswer, normalizeAnswer } from "../../../src/environment/search/answer.ts"

const file = new URL("../../../../shared/data/search/qa_normalize.jsonl", import.meta.url)
const present = existsSync(file)
const reason = present ? "" : " (skipped: ../shared/data/search is not there)"

describe("answers", () => {
  it.skipIf(!present)(`are normalized as recorded${reason}`, () => {
    const lines = readFileSync(file, "utf8").trim().split("\n")
    expect(lines).toHaveLength(25)
    for (const line of lines) {
      const record = JSON.parse(line)
      expect({ in: record.in, out: normalizeAnswer(record.in) }).toEqual(record)
    }
  })

  it.each([
    ["The  Grand-Hotel!", "grandhotel"],
    ["a\u0085b\u001cc\ufeffd", "b c\ufeffd"],
    ["Anna, an athlete", "anna athlete"],
    ["ΟΔΟΣ the δ", "οδος δ"],
    ["", ""],
  ])("%j becomes %j", (text, normal) => {
    expect(normalizeAnswer(text)).toBe(normal)
  })

  it("are correct if equal to a target, or with subem if they contain one", () => {
    expect(isRight("the Velan Bay.", ["Ordo", "velan bay"], "em")).toBe(true)
    expect(isRight("in Velan Bay", ["velan bay"], "em")).toBe(false)
    expect(isRight("in Velan Bay", ["velan bay"], "subem")).toBe(true)
    expect(isRight("Velan", ["velan bay"], "subem")).toBe(false)
    expect(isRight("", ["x"], "em")).toBe(false)
  })

  it("are taken from the last block", () => {
    expect(lastAnswer("<answer>one</answer> <answer> two\n</answer> <answer>open")).toBe("two")
    expect(lastAnswer("<answer>one <answer>two</answer> </answer>")).toBe("one <answer>two")
    expect(lastAnswer("<search>x</search> </answer> <answer>")).toBeUndefined()
    expect(lastAnswer("<answer>".repeat(500_000))).toBeUndefined()
  })
})
