import { describe, expect, it } from "vitest"
import { clusterInterval, passAtK } from "../../src/benchmark/clusters.ts"
import { wilsonInterval } from "../../src/training/wilson.ts"
import { Random } from "../../src/util/random.ts"

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)

describe("the interval over tasks and repeats", () => {
  it("is Wilson's where each task was played once", () => {
    for (const solved of [
      [0, 0, 0],
      [1, 1],
      [1, 0, 0, 1, 1, 0, 1],
      new Array(256).fill(0).map((_, i) => Number(i % 7 === 0)),
    ])
      expect(clusterInterval(solved, 1)).toEqual(wilsonInterval(sum(solved), solved.length))
  })

  it("tells of tasks alone where repeats say nothing, and of all episodes where tasks do not differ", () => {
    expect(clusterInterval([4, 0, 4, 0, 0, 4, 4, 0], 4)).toEqual(wilsonInterval(4, 8))
    expect(clusterInterval([2, 2, 2, 2], 4)).toEqual(wilsonInterval(8, 16))
    expect(clusterInterval([4, 4, 4], 4)).toEqual(wilsonInterval(3, 3))
    expect(clusterInterval([0, 0, 0], 4)).toEqual(wilsonInterval(0, 3))
  })

  it("holds the truth as often as it says, where one that takes repeats for tasks does not", () => {
    const random = new Random(3)
    const [worlds, tasks, repeats] = [1500, 60, 8]
    let [held, naive] = [0, 0]
    for (let world = 0; world < worlds; world++) {
      // Half of the tasks are hard, half are easy: 0.1 or 0.9, 0.5 in the mean.
      const solved = Array.from({ length: tasks }, () => {
        const chance = random.uniform() < 0.5 ? 0.1 : 0.9
        return sum(Array.from({ length: repeats }, () => Number(random.uniform() < chance)))
      })
      const holds = ([low, high]: readonly number[]) => Number(low! <= 0.5 && 0.5 <= high!)
      held += holds(clusterInterval(solved, repeats))
      naive += holds(wilsonInterval(sum(solved), tasks * repeats))
    }
    expect(held / worlds).toBeGreaterThan(0.93)
    expect(held / worlds).toBeLessThan(0.97)
    expect(naive / worlds).toBeLessThan(0.7)
  })
})

describe("pass@k", () => {
  it("is the share of choices of k episodes with a success among them", () => {
    for (const repeats of [1, 2, 5])
      for (let solved = 0; solved <= repeats; solved++)
        for (let k = 1; k <= repeats; k++) {
          const choices = subsets(repeats).filter((chosen) => chosen.length === k)
          const withOne = choices.filter((chosen) => chosen.some((episode) => episode < solved))
          expect(passAtK([solved], repeats)[k - 1]).toBeCloseTo(withOne.length / choices.length, 12)
        }
  })

  it("is the mean over tasks, its first the success, and finite for many episodes", () => {
    expect(passAtK([1, 3], 4)[0]).toBeCloseTo(0.5, 12)
    const many = passAtK([1, 500, 0], 1000)
    expect(many).toHaveLength(1000)
    expect(many.every((value, index) => value >= (many[index - 1] ?? 0))).toBe(true)
    expect(many.at(-1)).toBeCloseTo(2 / 3, 12)
  })
})

function subsets(count: number): number[][] {
  const numbers = Array.from({ length: count }, (_, number) => number)
  return Array.from({ length: 2 ** count }, (_, mask) => numbers.filter((number) => mask & (1 << number)))
}
