import { expect, it } from "vitest"
import type { Environment, Observation } from "../../src/environment/environment.ts"
import { parallelCopies } from "../../src/environment/parallel.ts"

const inner = {
  name: "inner",
  parse: (completion: string) => ({ action: completion, valid: completion !== "" }),
} as unknown as Environment<unknown>
const now = { copies: [{ text: "a" }, { text: "b" }] } as unknown as Observation
const parse = (completion: string) => parallelCopies(inner, { copies: 2 }).parse(completion, now)

it.each([
  ["<env1> left </env1><env2>right</env2>", { action: "left\nright", valid: true }],
  ["<env2>right</env2> then <env1>left</env1> and <env1>up</env1>", { action: "left\nright", valid: true }],
  ["</env1><env1>a<env1>b</env1><env2>c", { action: "a<env1>b\n", valid: false }],
  ["<env2>right", { action: "\n", valid: false }],
  ["", { action: "\n", valid: false }],
])("reads the parts of %s", (completion, parsed) => {
  expect(parse(completion)).toEqual(parsed)
})

it("parses many opened and unclosed parts in linear time", () => {
  // Quadratic work would take minutes, beyond the time of a test.
  expect(parse("<env1>".repeat(500_000)).valid).toBe(false)
})
