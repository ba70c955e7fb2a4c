import { expect, it } from "vitest"
import { outlineOf } from "../../../src/view/data/outline.ts"

const steps = (...of: [stepGroup: number, action: string][]) => of.map(([stepGroup, action]) => ({ stepGroup, action }))

it("has a row for each step, with the first step in the same state", () => {
  expect(outlineOf(steps([5, "a"], [6, "a"], [5, "b"], [6, "a"], [7, "a"]))).toEqual([
    { first: 0, count: 1 },
    { first: 1, count: 1 },
    { first: 2, count: 1, sameAs: 0 },
    { first: 3, count: 1, sameAs: 1 },
    { first: 4, count: 1 },
  ])
  expect(outlineOf([])).toEqual([])
})

it("has one row for the same action in the same state, from three steps", () => {
  const use = Array.from({ length: 37 }, (): [number, string] => [1, "use desklamp 1"])
  expect(outlineOf(steps([0, "go"], ...use, [1, "look"], [0, "x"], [0, "x"]))).toEqual([
    { first: 0, count: 1 },
    { first: 1, count: 37 },
    { first: 38, count: 1, sameAs: 1 },
    { first: 39, count: 1, sameAs: 0 },
    { first: 40, count: 1, sameAs: 0 },
  ])
})
