import { expect, it } from "vitest"
import { processFields } from "../../src/agents/process-agent.ts"
import { nearestName } from "../../src/options/nearest.ts"
import { readTable } from "../../src/options/read.ts"

it("thousands of unknown keys are all rejected, with suggestions for the first ones only", () => {
  const keys = Array.from({ length: 5000 }, (_, at) => [`directory${at % 10}`.padEnd(11 + (at >> 3), " "), at])
  const { complaints } = readTable({ command: ["sh"], ...Object.fromEntries(keys) }, processFields, "file")
  expect(complaints.length).toBeGreaterThan(1000)
  const meant = complaints.filter(({ text }) => /did you mean/.test(text))
  expect(meant.length).toBeGreaterThan(0)
  expect(meant.length).toBeLessThanOrEqual(50)
})

it("a name of thousands of characters is no misspelt one", () => {
  expect(nearestName("directry", ["directory"])).toBe("directory")
  expect(nearestName("d".repeat(70_000), ["d".repeat(69_999)])).toBeUndefined()
})
