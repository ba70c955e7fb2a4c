import { describe, expect, it } from "vitest"
import { compareRuns } from "../../../src/view/data/comparison.ts"
import { comparisonSentence } from "../../../src/view/page/overview/facts.ts"

const run = (count: number, metrics: (iteration: number) => Record<string, number>) =>
  Array.from({ length: count }, (_, at) => ({ iteration: at + 1, metrics: metrics(at + 1) }))
const success = (count: number, value: (iteration: number) => number) =>
  run(count, (iteration) => ({ "episode/success": value(iteration), "episode/return": -iteration }))

describe("a comparison of runs", () => {
  /** Ahead from iteration 11 on, if single values are compared. */
  const late = success(40, (iteration) => (iteration <= 10 ? 0.1 : 0.6) + (iteration % 2) / 50)
  const flat = success(30, (iteration) => 0.3 + (iteration % 3) / 50)

  it("names the best at the last common iteration, and since when its mean has been higher", () => {
    const [only, ...none] = compareRuns([flat, late])
    expect(none).toEqual([])
    expect(only).toMatchObject({ best: 1, other: 0, metric: "episode/success", from: 26, to: 30, since: 13 })
    expect(comparisonSentence(only!, ["flat", "late"])).toBe(
      "late is ahead of flat in success since iteration 13: 60.8 % against 32.0 % (mean of iterations 26 to 30).",
    )
  })

  it("compares each pair at its own last iteration, whichever is ahead there", () => {
    const early = success(20, (iteration) => 0.9 + (iteration % 2) / 50)
    const rising = success(40, (iteration) => 0.02 * iteration + (iteration % 2) / 50)
    const steady = success(40, () => 0.5)
    const compared = compareRuns([early, rising, steady])
    expect(compared.map(({ best, other, to }) => [best, other, to])).toEqual([
      [0, 2, 20],
      [0, 1, 20],
    ])
    const later = compareRuns([success(20, () => 0.1), rising, steady])
    expect(later.map(({ best, other, to, since }) => [best, other, to, since !== undefined])).toEqual([
      [1, 2, 40, true],
      [2, 0, 20, true],
    ])
  })

  it("says where a difference may be chance", () => {
    const noisy = (shift: number) => success(20, (iteration) => 0.5 + (iteration % 4) / 10 + shift)
    const [close] = compareRuns([noisy(0), noisy(0.02)])
    expect(close).not.toHaveProperty("since")
    expect(comparisonSentence(close!, ["a", "b"])).toMatch(/^b and a are not clearly apart in success: /)
    // Two iterations tell nothing of the variation.
    expect(compareRuns([success(2, () => 0), success(2, () => 1)])[0]).not.toHaveProperty("since")
  })

  it("orders the others, and takes the return where a run has no success", () => {
    const low = success(30, () => 0)
    expect(compareRuns([low, flat, late]).map(({ best, other }) => [best, other])).toEqual([
      [2, 1],
      [2, 0],
    ])
    const returns = run(30, (iteration) => ({ "episode/return": iteration }))
    expect(compareRuns([late, returns])[0]).toMatchObject({ best: 1, metric: "episode/return" })
    expect(compareRuns([late, run(5, () => ({ other: 1 }))])).toEqual([])
    expect(compareRuns([late])).toEqual([])
    expect(compareRuns([])).toEqual([])
  })
})
