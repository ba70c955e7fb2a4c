import { expect, it } from "vitest"
import { meanParts, timeParts } from "../../../src/view/data/time-parts.ts"

const report = (iteration: number, run: number, rollout: number, update: number) => ({
  iteration,
  metrics: {
    "time/rollout": rollout,
    "time/update": update,
    "time/iteration": rollout + update + 1,
    "time/tokens-per-second": 900,
    "time/run": run,
  },
})

it("tells the parts of iterations, what was in none of them, and what was between", () => {
  // Before the first iteration an evaluation took 20 s; between the others a checkpoint 5 s.
  const reports = [{ iteration: 0, metrics: { "time/run": 20 } }, report(1, 31, 6, 4), report(2, 52, 10, 5)]
  const times = timeParts(reports)
  expect(times.iterations).toEqual([1, 2])
  expect(times.parts).toEqual([
    { name: "rollout", seconds: [6, 10] },
    { name: "update", seconds: [4, 5] },
    { name: "other", seconds: [1, 1] },
    { name: "between", seconds: [0, 5] },
  ])
  const whole = 16 + 9 + 2 + 5
  expect(meanParts(times)).toEqual([
    { name: "rollout", mean: 8, share: 16 / whole },
    { name: "update", mean: 4.5, share: 9 / whole },
    { name: "other", mean: 1, share: 2 / whole },
    { name: "between", mean: 2.5, share: 5 / whole },
  ])
})

it("tells nothing where nothing was measured", () => {
  expect(timeParts([{ iteration: 1, metrics: { "loss/policy": 1 } }])).toEqual({ iterations: [], parts: [] })
})
