import { describe, expect, it } from "vitest"
import { matchesSearch, meanInterval, seedGroups } from "../../../src/view/data/seeds.ts"

const run = (seed: number, omega: number) => ({
  name: `sweep/o${omega}-s${seed}`,
  settings: {
    seed,
    "training.estimator.omega": omega,
    "training.estimator.name": "gigpo",
    run: `runs/${seed}/${omega}`,
  },
})

describe("runs that differ only in seeds", () => {
  it("are groups, named by what differs between them", () => {
    const runs = [run(1, 0), run(1, 1), run(2, 0), run(3, 0)]
    expect(seedGroups(runs)).toEqual([
      { runs: [runs[0], runs[2], runs[3]], label: "omega = 0" },
      { runs: [runs[1]], label: "omega = 1" },
    ])
    expect(seedGroups([runs[0]!, runs[2]!])).toEqual([{ runs: [runs[0], runs[2]], label: "" }])
    const { "training.estimator.omega": _, ...settings } = run(1, 0).settings
    expect(seedGroups([{ settings }, run(1, 0)]).map(({ label }) => label)).toEqual(["omega = not set", "omega = 0"])
    expect(seedGroups([])).toEqual([])
  })

  it("have a mean with the interval of Student's t", () => {
    expect(meanInterval([])).toBeUndefined()
    expect(meanInterval([0.5])).toEqual({ mean: 0.5, half: undefined })
    const { mean, half } = meanInterval([1, 2, 3])!
    expect([mean, half!.toFixed(4)]).toEqual([2, "2.4843"])
    // Quantiles from tables: 2.179 for 12 degrees of freedom, 2.042 for 30, 1.984 for 100.
    for (const [freedom, quantile] of [
      [12, 2.1788],
      [30, 2.0423],
      [100, 1.984],
    ] as const) {
      const values = Array.from({ length: freedom + 1 }, (_, at) => (at % 2 === 0 ? 1 : -1))
      const own = meanInterval(values)!
      const variance = values.reduce((sum, value) => sum + (value - own.mean) ** 2, 0) / freedom
      expect(Math.abs(own.half! / Math.sqrt(variance / values.length) - quantile)).toBeLessThan(0.001)
    }
  })
})

it("runs are found by parts of names and settings, and by exact values", () => {
  const runs = [run(1, 0), run(1, 1), run(12, 10)]
  const found = (search: string) => runs.filter((one) => matchesSearch(one, search)).map(({ name }) => name)
  expect(found("")).toHaveLength(3)
  expect(found("O1")).toEqual(["sweep/o1-s1", "sweep/o10-s12"])
  expect(found("omega=1")).toEqual(["sweep/o1-s1"])
  expect(found("gigpo seed=1 ")).toEqual(["sweep/o0-s1", "sweep/o1-s1"])
  expect(found("none")).toEqual([])
  expect(found("omega=")).toEqual([])
})
