import { expect, it } from "vitest"
import { numberLine } from "../../../src/environment/cards/number-line.ts"
import { deals } from "./deals.ts"
import { play, playExpert, start } from "./play.ts"

const environment = numberLine()

/** A seed for each of the 30 starts. */
async function starts(): Promise<Map<string, number>> {
  const seeds = new Map<string, number>()
  for (let seed = 0; seed < 1000; seed++) {
    const { text } = (await start(environment, seed)).first
    if (!seeds.has(text)) seeds.set(text, seed)
  }
  return seeds
}

it("starts like Python with the same random numbers", async () => {
  for (const [seed, [position, target]] of deals) {
    const { first } = await start(environment, seed)
    expect(first).toEqual({
      text: `Target: ${target}\nCurrent: ${position}`,
      anchor: `Target: ${target}\nCurrent: ${position}`,
      actions: ["-", "+"],
    })
  }
})

it("has every start except the target, with correct moves, rewards and ends for all", async () => {
  const seeds = await starts()
  const expected = [0, 1, 2, 3, 4, 5].flatMap((target) =>
    [0, 1, 2, 3, 4, 5].filter((at) => at !== target).map((at) => `Target: ${target}\nCurrent: ${at}`),
  )
  expect([...seeds.keys()].sort()).toEqual(expected.sort())

  for (const [text, seed] of seeds) {
    const [target, begin] = text.match(/\d/g)!.map(Number) as [number, number]
    for (let path = 0; path < 2 ** 7; path++) {
      const actions = [...path.toString(2).padStart(7, "0")].map((bit) => (bit === "1" ? "+" : "-"))
      let at = begin
      for (const [i, result] of (await play(environment, seed, actions)).entries()) {
        const to = actions[i] === "+" ? Math.min(at + 1, 5) : Math.max(at - 1, 0)
        const nearer = Math.abs(to - target) < Math.abs(at - target)
        expect(result).toMatchObject({
          observation: { text: `Target: ${target}\nCurrent: ${to}` },
          reward: to === target ? 1 : nearer ? 0 : -1,
          terminated: to === target,
          truncated: false,
          metrics: { success: to === target ? 1 : 0 },
        })
        at = to
      }
    }
    const solved = await playExpert(environment, seed)
    expect(solved).toHaveLength(Math.abs(target - begin))
    expect(solved.at(-1)).toMatchObject({ reward: 1, terminated: true })
  }
})

it("is truncated after 2 · maxPosition steps, or at the step limit, which also counts invalid completions", async () => {
  // Seed 42 starts at 5 and goes to 0.
  const wall = Array.from({ length: 20 }, () => "+")
  expect(await play(numberLine({ maxSteps: 100 }), 42, wall)).toHaveLength(10)
  expect(await play(numberLine({ maxSteps: 4 }), 42, wall)).toHaveLength(4)
  const idle = Array.from({ length: 20 }, () => "none")
  const idled = await play(numberLine({ maxSteps: 15 }), 42, idle)
  expect(idled).toHaveLength(15)
  expect(idled.at(-1)).toMatchObject({ reward: 0, truncated: true, terminated: false })
  const both = await play(numberLine({ maxSteps: 15 }), 42, [...idle.slice(0, 4), ...wall])
  expect(both).toHaveLength(14)
  // The step that arrives is the end, not a cut.
  const arrives = await play(numberLine({ maxSteps: 5 }), 42, ["-", "-", "-", "-", "-"])
  expect(arrives.at(-1)).toMatchObject({ terminated: true, truncated: false })
})

it("supports longer lines", async () => {
  const long = numberLine({ maxPosition: 50, maxSteps: 200 })
  for (let seed = 0; seed < 30; seed++) expect((await playExpert(long, seed)).at(-1)?.reward).toBe(1)
})
