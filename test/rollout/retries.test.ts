import { setTimeout as sleep } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import { rollout, type StepLocation } from "../../src/rollout/rollout.ts"
import { type DoorsTask, doorsEnvironment } from "./doors.ts"
import { type DoorsSetup, expectNo, rolloutSetup, useTokenizer } from "./setup.ts"

// Episodes that failed are played again, each time by other random numbers.

const tokenizer = useTokenizer()

expectNo("unhandledRejection")

const play = async (changes: Partial<DoorsSetup> = {}) => (await rollout(rolloutSetup(tokenizer.get(), changes))).groups

/** Fails a share of the attempts in their second step, by their own random numbers, whenever they run. */
function failing(share: number) {
  const keys: string[] = []
  let [open, now] = [0, 0]
  const sound = doorsEnvironment()
  const environment = doorsEnvironment({
    async start(task, context) {
      keys.push(context.random.key.join())
      open++
      const fails = context.random.derive("fault").uniform() < share
      const episode = await sound.start(task, context)
      let steps = 0
      return {
        first: episode.first,
        async step() {
          if (fails && steps++ === 1) throw new Error("boom")
          now = Math.max(now, open)
          const observation = { text: "red 0", anchor: "red 0" }
          return { observation, reward: 1, terminated: false, truncated: false }
        },
        async [Symbol.asyncDispose]() {
          open--
        },
      }
    },
  })
  return { environment, keys, open: () => open }
}

const short = { maxSteps: 4 }

describe("retries", () => {
  it("have no effect without failures", async () => {
    expect(await play({ maxRetries: 3 })).toEqual(await play())
  })

  it("replay only failed episodes, on fresh environments and with separate keys", async () => {
    const once = failing(0.5)
    const before = await play({ ...short, environment: once.environment })
    const again = failing(0.5)
    const after = await play({ ...short, environment: again.environment, maxRetries: 20 })
    const failed = before.flatMap(({ episodes }) => episodes).filter(({ outcome }) => outcome === "failed")
    expect(failed.length).toBeGreaterThan(2)
    expect(failed.length).toBeLessThan(14)
    let attempts = 0
    for (const [index, { episodes }] of after.entries()) {
      for (const [member, episode] of episodes.entries()) {
        const first = before[index]!.episodes[member]!
        expect(episode).toMatchObject({ outcome: "truncated", steps: { length: 4 } })
        if (first.outcome === "failed") expect(episode.attempt).toBeGreaterThan(0)
        else expect(episode).toEqual(first)
        attempts += 1 + (episode.attempt ?? 0)
      }
    }
    expect(again.keys).toHaveLength(attempts)
    expect(new Set(again.keys).size).toBe(attempts)
    expect(again.open()).toBe(0)
  })

  it("are limited, and the last attempt counts", async () => {
    const { environment, keys } = failing(1)
    for (const { episodes } of await play({ ...short, environment, maxRetries: 2 }))
      for (const episode of episodes)
        expect(episode).toMatchObject({
          outcome: "failed",
          attempt: 2,
          steps: { length: 1 },
          error: { message: "doors: boom" },
        })
    expect(keys).toHaveLength(48)
  })

  it("give the same results with concurrency 1, 4 and 32", async () => {
    const results = []
    for (const concurrency of [1, 4, 32])
      results.push(await play({ ...short, environment: failing(0.5).environment, maxRetries: 2, concurrency }))
    expect(results[1]).toEqual(results[0])
    expect(results[2]).toEqual(results[0])
    expect(
      results[0]!
        .flatMap(({ episodes }) => episodes.map(({ attempt = 0 }) => attempt))
        .sort()
        .at(-1),
    ).toBe(2)
  })

  it("report steps with their attempt, but not those of failed attempts", async () => {
    const told: StepLocation[] = []
    const onStep = (_: unknown, place: StepLocation) => told.push(place)
    const groups = await play({ ...short, environment: failing(0.5).environment, maxRetries: 20, onStep })
    for (const { index, episodes } of groups) {
      for (const [member, { attempt = 0 }] of episodes.entries()) {
        const own = told.filter((place) => place.task === index && place.member === member)
        const steps = (of: number) => own.filter((place) => place.attempt === of).map(({ step }) => step)
        for (let failed = 0; failed < attempt; failed++) expect(steps(failed)).toEqual([0])
        expect(steps(attempt)).toEqual([0, 1, 2, 3])
        expect(own.map((place) => place.attempt)).toEqual(own.map((place) => place.attempt).sort())
      }
    }
  })

  it("apply to agents and late episodes, but not to dropped ones, and not after the group's deadline", async () => {
    const counts = new Map<number, number>()
    const play_ = async ({ index }: { readonly index: number }) => {
      counts.set(index, (counts.get(index) ?? 0) + 1)
      if (index === 0) return null
      if (index === 1) throw new Error("boom")
      if (index === 2) await sleep(60_000, undefined, { ref: false })
      return {}
    }
    const setup = { agentLoop: play_, groupSize: 1, maxRetries: 2 } as Partial<DoorsSetup>
    const groups = await play({ ...setup, episodeTimeout: 0.05 })
    expect(groups.map(({ episodes: [episode] }) => [episode!.outcome, episode!.attempt])).toEqual([
      ["excluded", undefined],
      ["failed", 2],
      ["failed", 2],
      ["terminated", undefined],
    ])
    expect([...counts.values()]).toEqual([1, 3, 3, 1])
    counts.clear()
    await play({ ...setup, groupTimeout: 0.05 })
    expect([...counts.values()]).toEqual([1, 3, 1, 1])
  })

  it.each([-1, 0.5, Number.NaN])("of %d are rejected", async (retries) => {
    await expect(play({ maxRetries: retries })).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: `maxRetries is ${retries}; it must be an integer of at least 0.`,
    })
  })

  it("end with the rollout", async () => {
    const controller = new AbortController()
    const environment = doorsEnvironment({
      start: async (_task: DoorsTask) => {
        await sleep(5)
        throw new Error("no server")
      },
    })
    const running = play({ environment, maxRetries: 1e9, signal: controller.signal })
    await sleep(50)
    controller.abort(new Error("Ctrl-C"))
    await expect(running).rejects.toThrow("Ctrl-C")
  })
})
