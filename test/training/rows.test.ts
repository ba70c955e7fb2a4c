import { describe, expect, it } from "vitest"
import { Random } from "../../src/random.ts"
import { batches, byTask, collectSteps, toRows } from "../../src/training/rows.ts"
import { episode, step } from "./episodes.ts"

const groups = [
  [episode([step("a", 0), step("b", 1)]), episode([step("a", 5)], { outcome: "failed" }), episode([step("c", 2)])],
  [episode([], { outcome: "overflow" }), episode([step("a", 3, 1, { valid: false })], { outcome: "truncated" })],
]

describe("the steps of episodes", () => {
  it("are those of all but the failed ones, with their place", () => {
    expect(collectSteps(groups).map(({ step: _, ...rest }) => rest)).toEqual([
      { task: 0, episode: 0, anchor: "a", reward: 0, valid: true },
      { task: 0, episode: 0, anchor: "b", reward: 1, valid: true },
      { task: 0, episode: 2, anchor: "c", reward: 2, valid: true },
      { task: 1, episode: 1, anchor: "a", reward: 3, valid: false },
    ])
    expect(collectSteps([])).toEqual([])
  })

  it("become rows with their advantages, token for token", () => {
    const steps = collectSteps(groups)
    const rows = toRows(steps, Float64Array.of(1, -1, 0.5, 0))
    for (const [index, row] of rows.entries()) {
      const { prompt, reply, logProbs } = steps[index]!.step
      expect(row).toEqual({ prompt, reply, logProbs, advantage: [1, -1, 0.5, 0][index] })
    }
  })

  it("stand together by task", () => {
    expect(byTask(["first", "second", "third", "fourth"], collectSteps(groups))).toEqual([
      ["first", "second", "third"],
      ["fourth"],
    ])
  })
})

describe("batches", () => {
  const numbered = (...lengths: number[]) => {
    let next = 0
    return lengths.map((length) => Array.from({ length }, () => next++))
  }

  it.each([
    [[4, 4, 4], 4, [4, 4, 4]],
    [[4, 4, 4], 100, [12]],
    [[3, 3, 3], 4, [3, 3, 3]],
    [[5, 5], 4, [3, 4, 3]],
    [[7], 2, [2, 2, 1, 2]],
    [[1, 1], 1, [1, 1]],
  ])("of groups of %j rows and at most %i rows have %j", (lengths, size, expected) => {
    const made = batches(numbered(...lengths), size, new Random(1))
    expect(made.map((batch) => batch.length)).toEqual(expected)
  })

  it("hold every row once, the groups in an order that hangs on the random numbers", () => {
    const groups = numbered(3, 5, 2, 8, 1, 4)
    const orders = new Set<string>()
    for (let seed = 0; seed < 20; seed++) {
      const made = batches(groups, 6, new Random(seed))
      expect(made.flat().toSorted((a, b) => a - b)).toEqual(groups.flat())
      for (const batch of made) expect([5, 6]).toContain(batch.length)
      // Whole groups follow each other.
      for (const group of groups) {
        const at = made.flat().indexOf(group[0]!)
        expect(made.flat().slice(at, at + group.length)).toEqual(group)
      }
      expect(batches(groups, 6, new Random(seed))).toEqual(made)
      orders.add(made.flat().join())
    }
    expect(orders.size).toBeGreaterThan(15)
  })
})
