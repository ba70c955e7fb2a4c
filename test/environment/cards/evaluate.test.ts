import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { evaluate } from "../../../src/environment/cards/evaluate.ts"

// Made by python3.11: [formula, repr(eval(formula))], null where eval raises or gives no int or float, or where an integer of
// more than 20,000 bits would come up. 81 formulas by hand, 300 by chance from the elements of the card games.
const recorded: [string, string | null][] = JSON.parse(
  readFileSync(new URL("../../fixtures/cards/python-eval.json", import.meta.url), "utf8"),
)

describe("evaluate", () => {
  it("has fixtures of formulas with and without a value", () => {
    expect(recorded).toHaveLength(381)
    expect(recorded.filter(([, value]) => value === null).length).toBeGreaterThan(90)
  })

  it.each(recorded)("evaluates %j like Python: %s", (formula, expected) => {
    const value = evaluate(formula)
    if (expected === null) return expect(value).toBeUndefined()
    if (!/[.e]/.test(expected)) return expect(value).toBe(BigInt(expected))
    // Fractional powers are the C library's there, and may differ in the last bit.
    const tolerance = formula.includes("**") && !Number.isInteger(value) ? 2 ** -52 : 0
    expect(typeof value).toBe("number")
    expect(Math.abs((value as number) - Number(expected))).toBeLessThanOrEqual(tolerance * Math.abs(Number(expected)))
  })

  it("gives up on huge powers", () => {
    for (const formula of ["10**10**10", "9**9**9", "(0-9)**9**9**9", "10**10**10**10", "7**(10**10)"]) {
      expect(evaluate(formula)).toBeUndefined()
    }
    expect(evaluate("1**10**9")).toBe(1n)
    expect(evaluate("(-1)**10**9")).toBe(1n)
    expect(evaluate("(-1)**(10**9+1)")).toBe(-1n)
    expect(evaluate("(1-1)**10**9")).toBe(0n)
    expect(evaluate("2**20000")).toBeUndefined()
    expect(evaluate("2**10000")).toBe(2n ** 10000n)
  })

  it("accepts only formulas", () => {
    for (const text of ["process", "1;2", "1e3", "2.5", "1,2", "__import__", "a", "1 if 1 else 2", "\n", "１"]) {
      expect(evaluate(text)).toBeUndefined()
    }
  })
})
