import { setTimeout as sleep } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import type { Environment } from "../../src/environment/environment.ts"
import type { TaskSource } from "../../src/rollout/hooks.ts"
import { rollout } from "../../src/rollout/rollout.ts"
import { environmentTasks, takeTasks } from "../../src/rollout/tasks.ts"
import { GigpoError } from "../../src/util/errors.ts"
import { Random } from "../../src/util/random.ts"
import { doorsEnvironment } from "./doors.ts"
import { rolloutSetup, takeDoors, useTokenizer } from "./setup.ts"

const tokenizer = useTokenizer()

describe("the first tasks", () => {
  const take = (count: number, available?: number) =>
    takeTasks(doorsEnvironment(available === undefined ? {} : { count: available }), "train", new Random(1), count)

  it("are the first of an infinite source, or all of a finite one", () => {
    expect(take(5).map(({ index }) => index)).toEqual([0, 1, 2, 3, 4])
    expect(take(5, 3)).toEqual(take(3))
  })

  it("are drawn one by one, only as many as requested, and the source is closed", () => {
    let [drawn, closed] = [0, false]
    const environment: Environment<unknown> = {
      ...doorsEnvironment(),
      *tasks() {
        try {
          for (;;) yield drawn++
        } finally {
          closed = true
        }
      },
    }
    expect(takeTasks(environment, "test", new Random(1), 3)).toEqual([0, 1, 2])
    expect([drawn, closed]).toEqual([3, true])
  })

  it("must exist", () => {
    expect(() => take(2, 0)).toThrow(/doors offers no train tasks/)
    for (const count of [0, -1, 1.5, Number.NaN]) expect(() => take(count)).toThrow(/the number of tasks is/)
  })
})

describe("a source of tasks", () => {
  const play = async (changes: object) => await rollout({ ...rolloutSetup(tokenizer.get()), ...changes })

  it("of an environment gives the same tasks as a list", async () => {
    const environment = doorsEnvironment()
    const tasks = takeTasks(environment, "train", new Random(5), 4)
    const source = environmentTasks(environment, "train", new Random(5))
    expect(await play({ tasks: source, groups: 4 })).toEqual(await play({ tasks }))
  })

  it("of an environment gives fewer if there are no more, must give some, and can be closed", async () => {
    const few = environmentTasks(doorsEnvironment({ count: 3 }), "train", new Random(1))
    const totals: number[] = []
    const onEpisode = (_done: number, total: number) => totals.push(total)
    expect((await play({ tasks: few, groups: 8, onEpisode, concurrency: 1 })).groups).toHaveLength(3)
    expect([totals[0], totals.at(-1)]).toEqual([32, 32])
    const none = environmentTasks(doorsEnvironment({ count: 0 }), "train", new Random(1))
    await expect(play({ tasks: none, groups: 8 })).rejects.toMatchObject({
      code: "BAD_ENVIRONMENT",
      message: "doors offers no train tasks.",
    })
    let closed = false
    const environment = doorsEnvironment({
      *tasks() {
        try {
          for (;;) yield takeDoors(1)[0]!
        } finally {
          closed = true
        }
      },
    })
    {
      using source = environmentTasks(environment, "train", new Random(1))
      await play({ tasks: source, groups: 2 })
      expect(closed).toBe(false)
    }
    expect(closed).toBe(true)
  })

  it.each([1, 7, 64])(
    "is called in order, for one task at a time and when needed, with concurrency %i",
    async (concurrency) => {
      const doors = takeDoors(40)
      const asked: number[] = []
      const keys = new Set<string>()
      let [asking, done] = [false, 0]
      const ahead: number[] = []
      const tasks: TaskSource = {
        async next({ index, random, progress }) {
          expect([asking, progress]).toEqual([false, { iteration: 0, iterations: 1 }])
          asking = true
          keys.add(random.key.join())
          ahead.push(index * 4 - done)
          await sleep(index % 3)
          asking = false
          asked.push(index)
          return doors[index]
        },
      }
      const hooks = { keep: ({ index }: { index: number }) => index % 3 > 0 }
      const changes = { groups: 6, hooks, concurrency, onEpisode: () => done++ }
      const { groups, dropped } = await play({ tasks, ...changes })
      expect(groups.map(({ index }) => index)).toEqual([1, 2, 4, 5, 7, 8])
      expect(dropped.map(({ index }) => index)).toEqual([0, 3, 6])
      expect(asked).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8])
      expect(keys.size).toBe(9)
      expect(Math.max(...ahead)).toBeLessThanOrEqual(concurrency)
      expect({ groups, dropped }).toEqual(await play({ tasks: doors, groups: 6, hooks, concurrency: 3 }))
    },
  )

  it("is not called again after it had no more", async () => {
    const asked: number[] = []
    const next: TaskSource["next"] = ({ index }) => {
      asked.push(index)
      return takeDoors(2)[index]
    }
    expect((await play({ tasks: { next }, groups: 6, hooks: { keep: () => false } })).dropped).toHaveLength(2)
    expect(asked).toEqual([0, 1, 2])
    expect(await play({ tasks: { next: () => undefined }, groups: 6 })).toEqual({ groups: [], dropped: [] })
  })

  it("ends the rollout if it fails, with its name", async () => {
    const fail = (error: unknown) => ({ groups: 4, tasks: { next: () => Promise.reject(error) } })
    await expect(play(fail(new Error("no file")))).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: "tasks.next threw: no file",
    })
    const own = new GigpoError("BAD_DATA", "gone")
    await expect(play(fail(own))).rejects.toBe(own)
    const broken = doorsEnvironment({
      tasks: () => {
        throw new Error("no disk")
      },
    })
    await expect(play({ groups: 4, tasks: environmentTasks(broken, "test", new Random(1)) })).rejects.toMatchObject({
      code: "ENVIRONMENT_FAILED",
      message: "doors: no disk",
    })
    await expect(play({ tasks: [takeDoors(1)[0], undefined] })).rejects.toThrow(/a task must not be undefined/)
  })

  it("is not awaited after an abort if it hangs", async () => {
    const controller = new AbortController()
    const reason = new Error("Ctrl-C")
    const next = () => new Promise<never>(() => setTimeout(() => controller.abort(reason), 5))
    await expect(play({ tasks: { next }, groups: 4, signal: controller.signal })).rejects.toBe(reason)
  })
})
