import { describe, expect, it } from "vitest"
import type { RecordedGroup, RecordedStep } from "../../../src/view/data/recorded.ts"
import { tellingOf } from "../../../src/view/data/telling.ts"
import { tellingIterations } from "../../../src/view/serve/telling.ts"

describe("what tells most of a run", () => {
  it("is its begin, its end, its best, and then evenly what lies between", () => {
    const ten = Array.from({ length: 9 }, (_, at) => 10 * (at + 1))
    expect(tellingIterations(ten).slice(0, 5)).toEqual([10, 90, 50, 10 + 20, 70])
    expect(tellingIterations(ten, 45).slice(0, 3)).toEqual([10, 90, 40])
    expect(tellingIterations(ten, 5).slice(0, 2)).toEqual([10, 90])
    expect(tellingIterations([])).toEqual([])
    expect(tellingIterations([4], 4)).toEqual([4])
  })

  it.each([2, 3, 7, 100, 301])("is every iteration once, and none is far from one of the first (%i)", (count) => {
    const all = Array.from({ length: count }, (_, at) => at + 1)
    const order = tellingIterations(all, Math.ceil(count / 3))
    expect([...order].sort((a, b) => a - b)).toEqual(all)
    for (const taken of [3, 10, 30].filter((one) => one <= count)) {
      const first = order.slice(0, taken)
      const farthest = Math.max(...all.map((one) => Math.min(...first.map((other) => Math.abs(one - other)))))
      expect(farthest).toBeLessThanOrEqual(Math.ceil((2 * count) / taken))
    }
  })

  it("is a state in which episodes did different things", () => {
    const step = (stepGroup: number, action: string) => ({ stepGroup, action }) as RecordedStep
    const group = (...episodes: [number, RecordedStep[]][]) =>
      ({
        episodes: episodes.map(([sum, steps], member) => ({ member, return: sum, steps })),
      }) as unknown as RecordedGroup
    expect(tellingOf(group([0, [step(0, "a")]], [0, [step(1, "b")]]))).toBe(0)
    expect(tellingOf(group([0, [step(0, "a")]], [1, [step(1, "b")]]))).toBe(1)
    expect(tellingOf(group([0, [step(0, "a"), step(0, "b")]], [0, [step(1, "b")]]))).toBe(0) // alone
    expect(tellingOf(group([0, [step(0, "a")]], [0, [step(0, "a")]]))).toBe(0) // the same
    expect(tellingOf(group([0, [step(0, "a"), step(5, "a")]], [1, [step(0, "b"), step(5, "c")]]))).toBe(5)
  })
})
