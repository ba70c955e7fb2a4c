import { expect, it } from "vitest"
import { pythonPattern } from "../../src/model-files/python-pattern.ts"

it("an expression that is too large to be compiled is none, before it is used on a name", () => {
  expect(pythonPattern(`^(?:${"x".repeat(70_000)})`)).toBeUndefined()
  expect(pythonPattern("(?P<part>q|k)_proj\\Z")?.test("q_proj")).toBe(true)
})
