import { setTimeout as sleep } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import { rollout } from "../../src/rollout/rollout.ts"
import { environmentTasks } from "../../src/rollout/tasks.ts"
import { Random } from "../../src/util/random.ts"
import { chaosEnvironment, faults, oddities } from "./chaos.ts"
import { type DoorsTask, doorsEnvironment } from "./doors.ts"
import { type DoorsSetup, expectNo, rolloutSetup, takeDoors, useTokenizer } from "./setup.ts"

// The rollout among environments that do anything: each fault costs its own episodes, and no other.

const tokenizer = useTokenizer()

expectNo("unhandledRejection")
expectNo("warning")

const play = async (changes: Partial<DoorsSetup>) => {
  const setup = rolloutSetup(tokenizer.get(), { tasks: takeDoors(3), groupSize: 2, concurrency: 1, ...changes })
  return (await rollout({ ...setup, environmentTimeout: 0.1 })).groups
}

describe("an environment whose", () => {
  it.each(faults)("%s %s", async (place, _, act) => {
    const sound = await play({})
    const groups = await play({ environment: chaosEnvironment(1, place, act) })
    await sleep(6) // what rejects later does so now
    expect(groups.toSpliced(1, 1)).toEqual(sound.toSpliced(1, 1))
    for (const { outcome, error, steps } of groups[1]!.episodes) {
      expect(outcome).toBe("failed")
      expect(steps).toEqual([])
      expect(["ENVIRONMENT_FAILED", "ENVIRONMENT_TIMEOUT", "BAD_ENVIRONMENT", "NON_FINITE"]).toContain(error!.code)
      expect(error!.message).toMatch(/^doors: /)
      expect(error!.message.length).toBeLessThan(1000)
    }
  })

  it.each(oddities)("%s %s has no effect", async (place, _, act) => {
    const groups = await play({ environment: chaosEnvironment(1, place, act) })
    await sleep(6)
    for (const { outcome } of groups.flatMap(({ episodes }) => episodes)) expect(outcome).toBe("terminated")
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
  })

  it.each([
    [2e5, "overflow", undefined],
    [2e6, "failed", /longer than 1048576/], // than the tokenizer takes
  ] as const)("observations have %d characters loses its episode", async (length, outcome, message) => {
    const huge = { text: "x".repeat(length), anchor: "y".repeat(length) }
    const environment = chaosEnvironment(1, "first", () => huge)
    const [sound, group] = await play({ environment, tasks: takeDoors(2), groupSize: 1 })
    expect(sound!.episodes).toMatchObject([{ outcome: "terminated" }])
    expect(group!.episodes).toMatchObject([{ outcome, steps: [] }])
    if (message) expect(group!.episodes[0]!.error!.message).toMatch(message)
  })

  it("late answers, exceptions and promises at once, in concurrent episodes that also end", async () => {
    const all = [...faults, ...oddities]
    const environments = all.map(([place, , act], index) => chaosEnvironment(index, place, act))
    const tasks = takeDoors(all.length)
    const sound = doorsEnvironment()
    const environment = {
      ...sound,
      start: (task: DoorsTask, context: never) => environments[task.index]!.start(task, context),
      prompt: ((task, ...rest) => environments[task.index]!.prompt(task, ...rest)) as typeof sound.prompt,
    }
    const groups = await play({ environment, tasks, concurrency: 64 })
    await sleep(10)
    expect(groups).toHaveLength(all.length)
    const parse = all.flatMap(([place], index) => (place === "parse" ? [index] : [])) // stands in no task here
    for (const [index, { episodes }] of groups.entries())
      if (index < faults.length && !parse.includes(index))
        for (const { outcome } of episodes)
          expect([all[index]!.slice(0, 2), outcome]).toEqual([all[index]!.slice(0, 2), "failed"])
  })
})

describe("an environment whose tasks", () => {
  const supply = (last: (task: DoorsTask) => DoorsTask | undefined) => {
    const warnings: string[] = []
    const sound = doorsEnvironment()
    const environment = doorsEnvironment({
      *tasks(split, random) {
        for (const task of sound.tasks(split, random)) yield task.index < 2 ? task : (last(task) as DoorsTask)
      },
    })
    const tasks = environmentTasks(environment, "train", new Random(1), (message) => warnings.push(message))
    const setup = { ...rolloutSetup(tokenizer.get()), environment, tasks, groups: 4 }
    return { setup, warnings }
  }

  it.each<[string, (task: DoorsTask) => DoorsTask | undefined, string]>([
    [
      "throw",
      () => {
        throw new Error("chaos")
      },
      "doors: chaos",
    ],
    ["are nothing", () => undefined, "doors: a task must not be undefined; any other value will do."],
  ])("%s after some leave those, and a warning", async (_, last, why) => {
    const { setup, warnings } = supply(last)
    const { groups } = await rollout(setup)
    expect(groups.map(({ episodes }) => episodes.length)).toEqual([4, 4])
    expect(warnings).toEqual([`There are no more than 2 train tasks in this iteration. ${why}`])
  })
})
