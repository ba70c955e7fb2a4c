import { getEventListeners } from "node:events"
import { setTimeout as sleep } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import type { Completion, SampleRequest } from "../../src/engine/engine.ts"
import { type Episode, runEpisode } from "../../src/rollout/episode.ts"
import type { AgentLoop } from "../../src/rollout/play.ts"
import { rollout } from "../../src/rollout/rollout.ts"
import { GigpoError } from "../../src/util/errors.ts"
import { type DoorsTask, doorsEnvironment } from "./doors.ts"
import { FakePolicy } from "./fake-policy.ts"
import { type DoorsSetup, expectNo, rolloutSetup, takeDoors, useTokenizer } from "./setup.ts"

// What is late costs episodes: of a turn or an episode its own, of a group those that are not over.

const tokenizer = useTokenizer()

expectNo("unhandledRejection")
expectNo("warning")

const never = () => new Promise<never>(() => {})
const soon = 0.4

/** Replies to prompts of this text wait for the abort of their request, or, where it is deaf, for ever. */
class StuckPolicy extends FakePolicy {
  stuck: (prompt: string) => boolean = () => true
  deaf = false
  readonly aborted: unknown[] = []

  override async sample(request: SampleRequest): Promise<Completion> {
    if (!this.stuck(tokenizer.get().decode(request.prompt))) return await super.sample(request)
    request.signal!.addEventListener("abort", () => this.aborted.push(request.signal!.reason))
    if (this.deaf) return await never()
    return await new Promise((_, reject) => request.signal!.addEventListener("abort", () => reject(new Error("stop"))))
  }
}

const outcomes = (episodes: readonly Episode[]) => episodes.map(({ outcome }) => outcome)
const play = async (changes: Partial<DoorsSetup> = {}) => (await rollout(rolloutSetup(tokenizer.get(), changes))).groups

/** The environment, but tasks of this index hang in their step of this number. */
function hanging(index: number, at = 0) {
  let disposed = 0
  const sound = doorsEnvironment()
  const environment = doorsEnvironment({
    async start(task, context) {
      const episode = await sound.start(task, context)
      let steps = 0
      return {
        first: episode.first,
        step: async (action) => {
          if (task.index === index && steps++ === at) return await never()
          const result = await episode.step(action)
          return task.index === index ? { ...result, terminated: false } : result
        },
        async [Symbol.asyncDispose]() {
          disposed++
        },
      }
    },
  })
  return { environment, disposed: () => disposed }
}

describe.each([
  ["turnTimeout", "doors: turn 1 took longer than 0.4 s (rollout.turnTimeout)."],
  ["episodeTimeout", "doors: the episode took longer than 0.4 s (rollout.episodeTimeout)."],
  ["groupTimeout", "The group of task 1 took longer than 0.4 s (rollout.groupTimeout)."],
] as const)("%s", (name, message) => {
  it("fails late episodes, keeps their steps, disposes them, and does not affect others", async () => {
    const sound = await play()
    const { environment, disposed } = hanging(1, 1)
    const groups = await play({ environment, [name]: soon, concurrency: 100 })
    expect(groups.toSpliced(1, 1)).toEqual(sound.toSpliced(1, 1))
    for (const episode of groups[1]!.episodes)
      expect(episode).toMatchObject({
        outcome: "failed",
        steps: { length: 1 },
        error: { code: "ROLLOUT_TIMEOUT", message },
      })
    expect(disposed()).toBe(16)
  })

  it("aborts sampling", async () => {
    const policy = new StuckPolicy(tokenizer.get())
    const [group] = await play({ policy, [name]: soon, tasks: takeDoors(1) })
    expect(outcomes(group!.episodes)).toEqual(Array(4).fill("failed"))
    expect(policy.aborted).toHaveLength(4)
    for (const reason of policy.aborted) expect(reason).toMatchObject({ code: "ROLLOUT_TIMEOUT" })
  })

  it("does not wait for a policy that ignores signals", async () => {
    const policy = new StuckPolicy(tokenizer.get())
    policy.deaf = true
    const [group] = await play({ policy, [name]: soon, tasks: takeDoors(1) })
    for (const { error } of group!.episodes) expect(error).toMatchObject({ code: "ROLLOUT_TIMEOUT" })
  })

  it("fails late agents, in their own work and in their requests", async () => {
    const policy = new StuckPolicy(tokenizer.get())
    policy.stuck = (prompt) => prompt.includes("stuck")
    const told: string[] = []
    const agent: AgentLoop<DoorsTask> = async ({ sample, index }) => {
      await sample([{ role: "user", content: "hello" }])
      if (index === 1) await sample([{ role: "user", content: "stuck" }])
      if (index === 2) await never()
      return {}
    }
    const groups = await play({
      ...{ policy, agentLoop: agent, [name]: soon, concurrency: 100 },
      onStep: (_, { task, member, step }) => told.push(`${task}.${member}.${step}`),
    })
    expect(groups.map(({ episodes }) => outcomes(episodes)[0])).toEqual([
      "terminated",
      "failed",
      "failed",
      "terminated",
    ])
    for (const { episodes } of groups) for (const { steps } of episodes) expect(steps).toHaveLength(1)
    expect(new Set(told).size).toBe(16)
    expect(policy.aborted).toHaveLength(4)
  })

  it("has no effect if nothing is late", async () => {
    expect(await play({ [name]: 1000 })).toEqual(await play())
  })

  it("does not prevent the abort of the rollout", async () => {
    const controller = new AbortController()
    const running = play({ environment: hanging(1).environment, [name]: 1000, signal: controller.signal })
    await sleep(20)
    controller.abort(new Error("Ctrl-C"))
    await expect(running).rejects.toThrow("Ctrl-C")
    expect(getEventListeners(controller.signal, "abort")).toEqual([])
  })

  it.each([0, -1, Number.NaN])("of %d is rejected", async (seconds) => {
    await expect(play({ [name]: seconds })).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: `${name} is ${seconds}; it must be above 0 seconds.`,
    })
  })
})

describe("a deadline", () => {
  it("of turns restarts with every turn", async () => {
    const environment = doorsEnvironment({
      step: async (_action, episode) => {
        await sleep(100)
        return { ...(await episode.step("wait")), terminated: false }
      },
    })
    const changes = { environment, maxSteps: 12, tasks: takeDoors(1), groupSize: 1 }
    const [group] = await play({ ...changes, turnTimeout: 1 })
    expect(group!.episodes[0]).toMatchObject({ outcome: "truncated", steps: { length: 12 } })
    const [late] = await play({ ...changes, episodeTimeout: 1 })
    expect(late!.episodes[0]).toMatchObject({ outcome: "failed", error: { code: "ROLLOUT_TIMEOUT" } })
  })

  it("of a group keeps completed episodes, and does not start others", async () => {
    const started: number[] = []
    const policy = new StuckPolicy(tokenizer.get())
    policy.stuck = () => false
    const agent: AgentLoop<DoorsTask> = async ({ sample, member }) => {
      started.push(member)
      await sample([{ role: "user", content: "hello" }])
      return member === 1 ? await never() : {}
    }
    const [group] = await play({ policy, agentLoop: agent, tasks: takeDoors(1), concurrency: 1, groupTimeout: soon })
    expect(outcomes(group!.episodes)).toEqual(["terminated", "failed", "failed", "failed"])
    expect(started).toEqual([0, 1])
  })

  it("does not hide an earlier failure of the policy", async () => {
    const policy = new FakePolicy(tokenizer.get())
    policy.failure = { at: 3, error: new GigpoError("DEVICE_LOST", "gone") }
    await expect(play({ policy, turnTimeout: 5 })).rejects.toMatchObject({ code: "DEVICE_LOST" })
  })

  it("discards late results: steps are not reported, hooks and environment are not called", async () => {
    const calls: string[] = []
    let answer = (_: Completion) => {}
    const tokens = Int32Array.of(tokenizer.get().eosTokens[0]!)
    const policy = Object.assign(new FakePolicy(tokenizer.get()), {
      sample: () => new Promise<Completion>((resolve) => (answer = resolve)),
    })
    const environment = doorsEnvironment({
      step: async () => calls.push("step"),
      parse: () => {
        calls.push("parse")
        return { action: "a", valid: true }
      },
    })
    const hooks = {
      onTurn: () => {
        calls.push("onTurn")
        return { kind: "accept" } as const
      },
    }
    const setup = rolloutSetup(tokenizer.get(), { policy, environment, hooks, turnTimeout: soon })
    const episode = await runEpisode({ ...setup, task: takeDoors(1)[0]! }, () => calls.push("told"))
    answer({ tokens, logProbs: Float32Array.of(-1), finishReason: "stop" })
    await sleep(20)
    expect([episode.outcome, calls]).toEqual(["failed", []])
  })
})
