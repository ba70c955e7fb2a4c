import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Environment } from "../../src/environment/environment.ts"
import type { Episode } from "../../src/rollout/episode.ts"
import type { Group, HookContext } from "../../src/rollout/hooks.ts"
import { rolloutDefaults } from "../../src/rollout/options.ts"
import { Run } from "../../src/runs/run.ts"
import { actGuideCurriculum, smallestHint } from "../../src/training/curriculum/act-guide.ts"
import { successCurriculum } from "../../src/training/curriculum/by-success.ts"
import type { Curriculum } from "../../src/training/curriculum/curriculum.ts"
import { horizonCurriculum } from "../../src/training/curriculum/horizon.ts"
import { joinHooks } from "../../src/training/curriculum/join-hooks.ts"
import { tcodCurriculum, tcodSchedule } from "../../src/training/curriculum/tcod.ts"
import type { RunObserver } from "../../src/training/observers.ts"
import { layOutSequences } from "../../src/training/rows.ts"
import { collectSteps } from "../../src/training/steps.ts"
import { train } from "../../src/training/train.ts"
import { Random } from "../../src/util/random.ts"
import { TablePolicy } from "./table-policy.ts"
import { tableSetup } from "./table-setup.ts"
import { openDoors } from "./tiny.ts"

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-curriculum-"))
})
afterAll(() => rm(folder, { recursive: true }))

const rollout = { ...rolloutDefaults, maxSteps: 9 }
const doors = openDoors() as Environment
const open = (curriculum: Curriculum, environment = doors) =>
  curriculum.open({ environment, rollout, seed: 1, groups: 2 })
const at = (iteration: number, random = new Random(iteration)): HookContext => ({
  ...{ progress: { iteration, iterations: 9 }, random, signal: new AbortController().signal },
})
const episode = (success: number): Episode => ({ steps: [], outcome: "terminated", return: 0, metrics: { success } })

/** All that a training's episodes were, and what it came to. */
async function run(curriculum: () => object, concurrency: number, directory?: string) {
  const groups: (readonly Group[])[] = []
  const observer: RunObserver = { name: "all", episodes: (_, told) => void groups.push(told) }
  const setup = () => ({
    ...tableSetup({ policy: Object.assign(new TablePolicy(), { maxPositions: 4000 }) }),
    ...{ iterations: 4, groups: 3, groupSize: 4, stepsPerUpdate: 16, checkpointEvery: 1, observers: [observer] },
    ...{ rollout: { maxCompletionTokens: 2, concurrency }, curriculum: curriculum() as never },
  })
  if (directory === undefined) {
    const whole = setup()
    await train(whole)
    return { groups, logits: whole.policy.logits }
  }
  const { iteration: _, ...first } = { iteration: 0, ...setup() }
  {
    await using part = await Run.open(directory, {})
    for await (const { iteration } of train({ ...first, run: part })) if (iteration === 2) break
  }
  const second = setup()
  await using part = await Run.open(directory, {}, { resume: true })
  await train({ ...second, run: part })
  return { groups, logits: second.policy.logits }
}

describe.each([
  ["tcod", () => ({ name: "tcod", direction: "backward", every: 1 })],
  ["horizon", () => ({ name: "horizon", from: 1, to: 3, over: 3 })],
  ["act-guide", () => actGuideCurriculum({ guided: "add" })],
  ["by-success", () => ({ name: "by-success", poolSize: 5 })],
] as const)("the curriculum %s", (name, make) => {
  it("gives the same run with concurrency 1, 7 and 64, and after a resume", async () => {
    const expected = await run(make, 1)
    expect(await run(make, 7)).toEqual(expected)
    expect(await run(make, 64)).toEqual(expected)
    expect((await run(make, 7, join(folder, name))).logits).toEqual(expected.logits)
  })
})

describe("tcod", () => {
  it("plays min(k_start + floor(n / eta), T_max) steps", () => {
    const k = [0, 4, 5, 9, 10, 1000].map((step) => tcodSchedule(step, { start: 2, every: 5, maxSteps: 4 }))
    expect(k).toEqual([2, 2, 3, 3, 4, 4])
  })

  it("truncates episodes (forward), and replays the expert's first actions (backward)", async () => {
    const [task] = doors.tasks("train", new Random(3))
    const actions = (task as { rooms: string[] }).rooms.map((room) => ({ red: "a", green: "b", blue: "c" })[room])
    const expert = { ...doors, parse: (completion: string) => ({ action: completion, valid: true }) }
    const begin = async (direction: "forward" | "backward", iteration: number, environment = expert as Environment) =>
      await open(tcodCurriculum({ direction, every: 2 }), environment).start!(task, at(iteration))
    expect(await begin("forward", 5)).toEqual({ maxSteps: 3 })
    expect(await begin("forward", 50)).toEqual({ maxSteps: 9 })
    expect(await begin("backward", 0)).toEqual({ replay: actions.slice(0, 2) })
    expect(await begin("backward", 50)).toEqual({ replay: [] })
    const lost = { ...expert, expert: () => ({ complete: () => "wait" }) } as Environment
    expect(await begin("backward", 0, lost)).toEqual({ replay: undefined })
    expect(() => open(tcodCurriculum({ direction: "backward" }), { ...doors, expert: undefined } as never)).toThrow(
      /tcod needs an expert/,
    )
  })
})

it("horizon grows from one step limit to another", () => {
  const steps = [0, 1, 2, 3, 8].map((n) => open(horizonCurriculum({ from: 2, over: 4 })).start!(0, at(n)))
  expect(steps).toEqual([2, 4, 6, 7, 9].map((maxSteps) => ({ maxSteps })))
})

describe("act-guide", () => {
  it.each([1, 2, 3, 7, 12, 15])("finds the smallest useful hint, %i of 15, with 4 probes", async (smallest) => {
    let probes = 0
    const found = await smallestHint(15, 4, async (count) => {
      probes++
      return count >= smallest ? count : undefined
    })
    expect([found, probes <= 4]).toEqual([smallest, true])
    expect(await smallestHint(100, 4, async () => undefined)).toBeUndefined()
  })

  it("replays failed groups with the hint, and learns from the prompt without it", async () => {
    const environment = openDoors({
      parse: (completion) => ({ action: completion.at(0) ?? "wait", valid: true }),
      prompt: (_task, _history, now) => [{ role: "user", content: now.text }],
    }) as Environment
    const seen: Group[] = []
    const prompts: number[] = []
    class Obedient extends TablePolicy {
      override async sample(request: Parameters<TablePolicy["sample"]>[0]) {
        prompts.push(request.prompt.length)
        const text = String.fromCharCode(...request.prompt.toReversed())
        const room = /(red|green|blue) (\d)/.exec(text)!
        const told = new RegExp(`${Number(room[2]) + 1}\\. (.)`).exec(text)?.[1] ?? "z"
        const tokens = Int32Array.of(told.charCodeAt(0))
        return { tokens, logProbs: Float32Array.of(-0.5), finishReason: "length" as const }
      }
    }
    const observer: RunObserver = { name: "seen", episodes: (_, groups) => void seen.push(...groups) }
    const policy = Object.assign(new Obedient(), { maxPositions: 4000 })
    await train({
      ...tableSetup({ policy, environment }),
      ...{ iterations: 1, curriculum: { name: "act-guide" }, loss: { name: "act-guide" }, observers: [observer] },
    })
    for (const { episodes } of seen) {
      expect(episodes.every(({ metrics }) => metrics.success === 1)).toBe(true)
      expect(episodes.every(({ steps }) => steps.every(({ offPolicy }) => offPolicy === true))).toBe(true)
      for (const { steps } of episodes) for (const { prompt } of steps) expect(prompt.length).toBeLessThan(30)
    }
    expect(Math.max(...prompts)).toBeGreaterThan(30)
    const rows = layOutSequences(collectSteps(seen.map(({ episodes }) => episodes)))
    expect(rows.every(({ segments }) => segments.every(({ offPolicy }) => offPolicy))).toBe(true)
  })
})

describe("by-success", () => {
  it("prefers tasks with success rate one half, without repetition in an iteration, and keeps its state", () => {
    const hooks = open(successCurriculum({ poolSize: 4, learningRate: 1, minWeight: 0.01 }))
    const drawAll = (iteration: number, count: number) =>
      Array.from({ length: count }, (_, index) =>
        hooks.next!({ ...at(iteration, new Random(iteration).derive(index)), index }),
      )
    const all = drawAll(0, 4)
    expect(new Set(all).size).toBe(4)
    const shares = [0, 1, 0.5, 0]
    hooks.rolloutEnd!(
      all.map((task, index) => ({ task, index, episodes: [0, 1].map((m) => episode(Number(m < 2 * shares[index]!))) })),
      at(0),
    )
    const firsts = Array.from({ length: 60 }, (_, n) => drawAll(n + 1, 1)[0])
    expect(firsts.filter((task) => task === all[2]).length).toBeGreaterThan(50)
    const state = hooks.state!()
    const again = open(successCurriculum({ poolSize: 4, learningRate: 1, minWeight: 0.01 }))
    again.restore!(state)
    expect(again.state!()).toEqual(state)
  })

  it("rejects additional tasks, and training without an environment", async () => {
    const tasks = { next: () => 0 }
    await expect(train({ ...tableSetup(), tasks, curriculum: { name: "by-success" } })).rejects.toThrow(
      /leave tasks out/,
    )
    expect(() => successCurriculum().open({ rollout, seed: 1, groups: 1 })).toThrow(/give an environment/)
  })
})

it("joins hooks: a group is dropped if either drops it, the second decides last", async () => {
  const joined = joinHooks<number>(
    { start: () => ({ maxSteps: 1, hint: "a" }), keep: () => true, score: ({ episodes }) => episodes.slice(1) },
    { start: () => ({ maxSteps: 2 }), keep: () => false, score: ({ episodes }) => [...episodes, episode(1)] },
  )!
  expect(Object.keys(joined).sort()).toEqual(["keep", "score", "start"])
  const group = { task: 0, index: 0, episodes: [episode(0), episode(0.5)] }
  expect(await joined.start!(0, at(0))).toEqual({ maxSteps: 2, hint: "a" })
  expect(await joined.keep!(group, at(0))).toBe(false)
  expect((await joined.score!(group, at(0))).map(({ metrics }) => metrics.success)).toEqual([0.5, 1])
})
