import { describe, expect, it } from "vitest"
import { type ScheduleRamp, scheduleValue, scheduleValues } from "../../src/options/schedule.ts"

const over = (ramp: ScheduleRamp, iterations: number) =>
  Array.from({ length: iterations }, (_, iteration) => scheduleValue(ramp, { iteration, iterations }))

describe("a ramp", () => {
  it("changes from one number to another over the run, and then stays constant", () => {
    expect(over({ from: 0, to: 4 }, 4)).toEqual([0, 1, 2, 3])
    expect(over({ from: 1, to: 0, over: 2 }, 4)).toEqual([1, 0.5, 0, 0])
    expect(over({ from: 1, to: 2, after: 2 }, 4)).toEqual([1, 1, 1, 1.5])
    expect(over({ from: 1, to: 3, over: 1, after: 1 }, 4)).toEqual([1, 1, 3, 3])
    expect(over({ from: 1, to: 2, after: 9 }, 3)).toEqual([1, 1, 1])
  })

  it("of the shape cosine begins and ends gently", () => {
    const [first, second, third, fourth] = over({ from: 0, to: 1, shape: "cosine" }, 4)
    expect(first).toBe(0)
    expect(second).toBeCloseTo((1 - Math.SQRT1_2) / 2, 12)
    expect(third).toBeCloseTo(0.5, 12)
    expect(fourth).toBeCloseTo((1 + Math.SQRT1_2) / 2, 12)
  })
})

it("of the shape power or cubic", () => {
  expect(over({ from: 0, to: 16, shape: "power" }, 4)).toEqual([0, 1, 4, 9])
  expect(over({ from: 0, to: 64, shape: "power", power: 3 }, 4)).toEqual([0, 1, 8, 27])
  expect(over({ from: -1, to: 1, shape: "cubic" }, 4)).toEqual([-1, -0.125, 0, 0.125])
  expect(over({ from: 1, to: -1, shape: "cubic", over: 2 }, 4)).toEqual([1, 0, -1, -1])
})

it("the numbers of a group at a point of the training; other values are unchanged", () => {
  const options = {
    rate: { from: 0, to: 10 },
    size: 3,
    kind: "x",
    told: undefined,
    share: () => 0.5,
    likeness: { least: 1 },
  }
  expect(scheduleValues(options, { iteration: 1, iterations: 2 })).toEqual({ ...options, rate: 5, share: 0.5 })
})
