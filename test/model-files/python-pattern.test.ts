import { expect, it } from "vitest"
import { pythonPattern } from "../../src/model-files/python-pattern.ts"

it("an expression that is too large to compile is rejected before use", () => {
  expect(pythonPattern(`^(?:${"x".repeat(70_000)})`)).toBeUndefined()
  expect(pythonPattern("(?P<part>q|k)_proj\\Z")?.test("q_proj")).toBe(true)
})
