import { describe, expect, it } from "vitest"
import type { IterationReport } from "../../../src/runs/report.ts"
import {
  curvesOf,
  lastKnown,
  marksOf,
  nearestKnown,
  nearestPlace,
  reachOf,
  smoothed,
} from "../../../src/view/data/curves.ts"
import { metricNames } from "../../../src/view/data/metrics.ts"
import { valueInWords } from "../../../src/view/data/value-words.ts"
import { madeReports } from "../made-reports.ts"

const of = (values: Readonly<Record<number, number>>) =>
  Object.entries(values).map(([iteration, value]) => ({ iteration: Number(iteration), metrics: { "a/b": value } }))

describe("curves", () => {
  it("stand over the places of all runs, with gaps where one has none", () => {
    const curves = curvesOf([of({ 1: 10, 3: 30 }), of({ 2: 5, 3: 6 })], "a/b", "iteration")
    expect(curves).toEqual({
      along: [1, 2, 3],
      values: [
        [10, null, 30],
        [null, 5, 6],
      ],
      nonFinite: [new Set(), new Set()],
    })
  })

  it("have gaps and marks where a value is NaN or infinite, and leave out places at which there is nothing", () => {
    // As JSON has them: null, and a number that is too large.
    const broken = JSON.parse('[{"iteration":3,"metrics":{"a/b":null}},{"iteration":5,"metrics":{"a/b":-1e999}}]')
    const runs = [
      [...of({ 1: Number.NaN, 2: 4 }), ...broken, { iteration: 9, metrics: { "other/one": 1 } }],
      of({ 4: 8, 5: 9 }),
    ]
    expect(curvesOf(runs, "a/b", "iteration")).toEqual({
      along: [1, 2, 3, 4, 5],
      values: [
        [null, 4, null, null, null],
        [null, null, null, 8, 9],
      ],
      nonFinite: [new Set([0, 2, 4]), new Set()],
    })
    expect(curvesOf([], "a/b", "iteration")).toEqual({ along: [], values: [], nonFinite: [] })
    expect([...metricNames([broken[0]])]).toEqual(["a/b"])
    const text = { iteration: 1, metrics: { "a/b": "high" } } as unknown as (typeof broken)[0]
    expect([...metricNames([text])]).toEqual([])
  })

  it("have the places of warnings, resumptions and checkpoints", () => {
    const warned = of({ 1: 1, 2: 2, 3: 3 }).map((one) => (one.iteration > 1 ? { ...one, warnings: ["odd"] } : one))
    const run = (reports: readonly IterationReport[], checkpoints: readonly number[] = []) => ({ reports, checkpoints })
    const marks = marksOf([run(warned, [3, 77]), run(warned.slice(1)), run(of({ 9: 1 }))], "iteration")
    expect(marks).toEqual({ warned: [2, 3], resumed: [], saved: [3] })
    const resumed = of({ 8: 1, 9: 1 }).map((one) => (one.iteration === 9 ? { ...one, resumed: true as const } : one))
    expect(marksOf([run(resumed)], "iteration")).toEqual({ warned: [], resumed: [9], saved: [] })
    expect(marksOf([run(of({ 9: 1 }))], "time")).toEqual({ warned: [], resumed: [], saved: [] })
  })

  it("say at each place whether a value is finite", () => {
    const curves = curvesOf([[...of({ 1: 2 }), { iteration: 2, metrics: { "a/b": Number.NaN } }]], "a/b", "iteration")
    expect([0, 1, undefined].map((place) => valueInWords("a/b", curves, 0, place))).toEqual([
      "2",
      "not finite",
      "not finite",
    ])
    expect(valueInWords("a/b", curvesOf([of({ 1: 2 }), of({ 2: 3 })], "a/b", "iteration"), 0)).toBe("2")
  })

  it("have intervals around shares of episodes", () => {
    const reports = madeReports(30, 2)
    const { along, values, intervals } = curvesOf([reports], "evaluation/success", "iteration")
    expect(along).toEqual([10, 20, 30])
    for (const [place, value] of values[0]!.entries()) {
      expect(intervals![0]!.low[place]).toBeLessThan(value!)
      expect(intervals![0]!.high[place]).toBeGreaterThan(value!)
    }
    expect(curvesOf([reports], "loss/policy", "iteration").intervals).toBeUndefined()
  })

  it("go by the time that the run was at work, or else by the clock", () => {
    const reports = [60, 130].map((seconds, at) => ({
      iteration: at + 1,
      time: new Date(seconds * 2000).toISOString(),
      metrics: { "a/b": at, "time/run": seconds },
    }))
    expect(curvesOf([reports], "a/b", "time").along).toEqual([60, 130])
    expect(reachOf([reports, []], "time")).toEqual([60, 130])
    expect(reachOf([[]], "iteration")).toBeUndefined()
    const clock = reports.map(({ metrics: { "time/run": _, ...metrics }, ...report }) => ({ ...report, metrics }))
    expect(curvesOf([clock], "a/b", "time").along).toEqual([0, 140])
  })
})

describe("smoothing", () => {
  it("leaves values as they are with weight 0, and a constant curve with any", () => {
    const values = [1, null, 3]
    expect(smoothed(values, 0)).toBe(values)
    for (const value of smoothed([5, 5, null, 5], 0.9)) if (value !== null) expect(value).toBeCloseTo(5, 12)
  })

  it("is the mean of what was, by weights that fall by the factor", () => {
    const [weight, values] = [0.6, [4, 1, 7, 2]]
    const last = smoothed(values, weight).at(-1)!
    const weights = values.map((_, at) => weight ** (values.length - 1 - at))
    const mean = values.reduce((sum, value, at) => sum + value * weights[at]!, 0)
    expect(last).toBeCloseTo(mean / weights.reduce((sum, one) => sum + one, 0), 12)
  })

  it("keeps gaps, which weigh nothing", () => {
    expect(smoothed([2, null, 6], 0.5)).toEqual([2, null, smoothed([2, 6], 0.5)[1]])
  })
})

describe("reading a curve", () => {
  it("finds the nearest value within it, and none beyond its ends", () => {
    const values = [null, 1, null, null, 4, null]
    expect(values.map((_, place) => nearestKnown(values, place))).toEqual([undefined, 1, 1, 4, 4, undefined])
    expect(lastKnown(values)).toBe(4)
    expect([nearestKnown([null], 0), lastKnown([null])]).toEqual([undefined, undefined])
  })

  it("finds the nearest place along its bottom", () => {
    expect([-5, 1, 1.9, 2.1, 5, 99].map((at) => nearestPlace([1, 3, 9], at))).toEqual([0, 0, 0, 1, 1, 2])
  })
})
