import { getEventListeners } from "node:events"
import { join } from "node:path"
import { describe, expect, it, vi } from "vitest"
import type { Agent, AgentContext } from "../../src/agents/agent.ts"
import type { SampleRequest } from "../../src/engine/engine.ts"
import type { Environment } from "../../src/environment/environment.ts"
import type { Group, TaskSource } from "../../src/rollout/hooks.ts"
import type { IterationReport } from "../../src/runs/report.ts"
import { Run } from "../../src/runs/run.ts"
import { evaluate } from "../../src/training/evaluate.ts"
import type { TrainOptions } from "../../src/training/options.ts"
import type { TrainSetup } from "../../src/training/prepare.ts"
import { train } from "../../src/training/train.ts"
import { ask, askAll, type Message, user } from "../endpoint/ask.ts"
import { type Model, openDoors, TinyModel, timeless } from "./tiny.ts"

// Runs with a custom agent, with a model of random weights.

const tiny = new TinyModel(openDoors(), { maxPositions: 1024 })

interface Walk {
  readonly rooms: readonly string[]
}

const look = {
  type: "function",
  function: { name: "look", strict: true, parameters: { type: "object", properties: { at: { enum: ["a", "b"] } } } },
}

/** A conversation, and calls that part from it side by side; some by a socket. */
const walk: Agent<Walk> = async ({ rooms }, context) => {
  const talk: Message[] = []
  let found = 0
  for (const [index, room] of rooms.entries()) {
    context.step({ anchor: `${room} ${found}` })
    talk.push(user(room))
    const completion = await ask(context, talk, { tools: [look], max_tokens: 4 }, index === 0 ? fetch : undefined)
    talk.push(completion)
    if (String(completion.content).length % 2 === 0) {
      found++
      context.reward(1)
    }
  }
  const paths = ["x", "y", "z"].map((path) => ask(context, [...talk, user(path)], { tools: [look], max_tokens: 6 }))
  const [choices] = await Promise.all([askAll(context, [user("choose")], { n: 2, max_tokens: 3 }), ...paths])
  return { reward: Number(choices[0]!.content === choices[1]!.content), success: found > 1 }
}

const walks: TaskSource<Walk> = {
  next: ({ random }) => ({ rooms: Array.from({ length: 3 }, () => ["red", "green", "blue"][random.below(3)]!) }),
}

const options: TrainOptions = {
  iterations: 3,
  groups: 3,
  groupSize: 4,
  stepsPerUpdate: 64,
  seed: 3,
  rollout: { maxCompletionTokens: 4 },
  optimizer: { learningRate: 5e-3, warmup: 1 },
}

/** What is left of a run: its lines, what was played, and every bit of the weights. */
async function played(model: Model, changes: Partial<TrainSetup<Walk>> = {}) {
  const groups: (readonly Group[])[] = []
  const reports: IterationReport[] = []
  const setup = { ...model, agent: walk, tasks: walks, ...options, ...changes }
  for await (const report of train({
    ...setup,
    observers: [{ episodes: (_, all) => void groups.push(structuredClone(withoutGrammars(all))) }],
  }))
    reports.push(report)
  return { reports: reports.map(timeless), groups, weights: await tiny.weights(model.policy) }
}

/** A grammar lives in the addon. */
function withoutGrammars(groups: readonly Group[]): Group[] {
  return groups.map((group) => ({
    ...group,
    episodes: group.episodes.map((episode) => ({
      ...episode,
      steps: episode.steps.map(({ constraint, ...step }) => ({ ...step, constraint: constraint !== undefined })),
    })),
  }))
}

describe("a run with an agent", () => {
  it("is bit-identical with concurrency 1, 8 and 64", async () => {
    const many = (concurrency: number) => ({
      ...{ iterations: 1, groups: 8, groupSize: 8 },
      rollout: { ...options.rollout, concurrency },
    })
    const alone = await played(await tiny.open(), many(1))
    const steps = alone.groups.flatMap((all) => all.flatMap(({ episodes }) => episodes.flatMap((one) => one.steps)))
    expect(steps).toHaveLength(8 * 8 * 8)
    expect(steps.filter(({ constraint }) => constraint).length).toBe(8 * 8 * 6)
    for (const { metrics } of alone.reports) {
      expect(metrics).toMatchObject({ "episode/steps": 8, "episode/failed": 0, "sequence/retokenized": 0 })
      expect(metrics["advantage/std"]).toBeGreaterThan(0)
    }
    for (const concurrency of [8, 64]) expect(await played(await tiny.open(), many(concurrency))).toEqual(alone)
  })

  it("continues from a checkpoint as without interruption", async () => {
    const whole = await played(await tiny.open())
    const directory = join(tiny.folder, "resumed")
    const parts = []
    for (const resume of [false, true]) {
      const model = await tiny.open()
      const run = await Run.open(directory, options, { resume })
      const controller = new AbortController()
      const onProgress: TrainSetup["onProgress"] = ({ stage, done }) => {
        if (!resume && stage === "rollout" && done === 7 && run.iteration === 1) controller.abort(new Error("Ctrl-C"))
      }
      const part = played(model, { run, checkpointEvery: 1, signal: controller.signal, onProgress })
      if (resume) parts.push(await part)
      else await expect(part).rejects.toThrow("Ctrl-C")
      await run.close()
    }
    const [{ reports, groups, weights }] = parts as [Awaited<ReturnType<typeof played>>]
    expect(weights).toBe(whole.weights)
    expect(groups).toEqual(whole.groups.slice(-groups.length))
    expect(reports.at(-1)).toEqual(whole.reports.at(-1))
    expect(reports.length).toBeLessThan(whole.reports.length)
  })

  it("aborts the requests of its agents when it is aborted, and closes its endpoint", async () => {
    const model = await tiny.open()
    const controller = new AbortController()
    const contexts: AgentContext[] = []
    // Deaf to its signal: what it asks for ends all the same.
    const agent: Agent<Walk> = async (_, context) => {
      contexts.push(context)
      for (;;) await ask({ ...context, signal: new AbortController().signal }, [user("more")], { max_tokens: 900 })
    }
    const sampling = model.policy.sample.bind(model.policy)
    let running = 0
    model.policy.sample = async (request: SampleRequest) => {
      if (++running === 10) controller.abort(new Error("Ctrl-C"))
      try {
        return await sampling(request)
      } finally {
        running--
      }
    }
    await expect(played(model, { agent, signal: controller.signal })).rejects.toThrow("Ctrl-C")
    await vi.waitFor(() => expect(running).toBe(0))
    expect(contexts.every(({ signal }) => signal.aborted)).toBe(true)
    expect(getEventListeners(controller.signal, "abort")).toEqual([])
    await expect(fetch(contexts[0]!.openai.baseURL)).rejects.toThrow()
  })

  it("drops episodes that cannot be scored and fails those that throw: counted, reported, and not learned from", async () => {
    const agent: Agent<Walk> = async (task, context) => {
      const { content } = await ask(context, [user(task.rooms.join(" "))])
      if (String(content).length % 3 === 0) return null
      if (String(content).length % 3 === 1) throw new Error("the tool is down")
      return { reward: Math.min(String(content).length, 3) }
    }
    const { reports, groups } = await played(await tiny.open(), { agent, iterations: 1, guards: { maxFailed: 1 } })
    const outcomes = groups[0]!.flatMap(({ episodes }) => episodes.map(({ outcome }) => outcome))
    const count = (outcome: string) => outcomes.filter((one) => one === outcome).length
    expect([count("excluded"), count("failed"), count("terminated")].every((number) => number > 1)).toBe(true)
    expect(reports[0]!.metrics).toMatchObject({
      "episode/count": 12,
      "episode/excluded": count("excluded") / 12,
      "episode/failed": count("failed") / 12,
    })
    expect(reports[0]!.failures).toMatchObject([
      { reason: expect.stringContaining("the tool is down"), count: count("failed") },
    ])
    // Steps recorded before the failure are kept with the episodes, for inspection.
    for (const { outcome, steps } of groups[0]!.flatMap(({ episodes }) => episodes))
      expect([outcome, steps.length]).toEqual([outcome, 1])
  })

  it("is evaluated on held-out tasks with its agent, in training and separately", async () => {
    const model = await tiny.open()
    const splits: string[] = []
    const environment = {
      name: "walks",
      *tasks(split, random) {
        splits.push(split)
        for (;;) yield { rooms: [["red", "green", "blue"][random.below(3)]!, split] }
      },
    } satisfies Pick<Environment<Walk>, "name" | "tasks">
    const report = await evaluate({
      ...model,
      environment,
      agent: walk,
      tasks: 6,
      seed: 3,
      temperature: 1,
      rollout: { maxCompletionTokens: 4 },
    })
    expect(report).toMatchObject({ episodes: 6, failed: 0, meanSteps: 7, success: expect.any(Number) })
    const { tasks: _, ...rest } = options as typeof options & { tasks?: undefined }
    const trained = await train({
      ...model,
      ...rest,
      environment,
      agent: walk,
      iterations: 1,
      evaluation: { every: 1, tasks: 6, temperature: 1 },
    })
    expect(splits).toEqual(["test", "test", "train", "test"])
    expect(trained[0]!.evaluation).toEqual(report)
    expect(trained[1]!.evaluation!.episodes).toBe(6)
  })

  it.each<[string, object, RegExp]>([
    ["no function", { agent: {} }, /agent must be a function/],
    ["one beside a player", { agent: walk, agentLoop: async () => null }, /agent and agentLoop are both given/],
    ["an invalid normalizer", { agent: walk, normalize: "lower" }, /normalize must be a function/],
    [
      "a normaliser without an agent",
      { agent: undefined, normalize: String, environment: openDoors() },
      /normalize is given without agent/,
    ],
    ["no tasks", { agent: walk, tasks: undefined }, /tasks/],
  ])("is rejected with %s, before anything is touched", async (_, changes, message) => {
    await expect(played(await tiny.open(), changes as object)).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: expect.stringMatching(message),
    })
  })
})
