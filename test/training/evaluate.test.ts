import { getEventListeners } from "node:events"
import { describe, expect, it } from "vitest"
import type { SampleRequest } from "../../src/engine/engine.ts"
import type { Environment } from "../../src/environment/environment.ts"
import { type EvaluateSetup, evaluate } from "../../src/training/evaluate.ts"
import { mean } from "../../src/training/mean.ts"
import { wilsonInterval } from "../../src/training/wilson.ts"
import { doorsEnvironment } from "../rollout/doors.ts"
import { openDoors, TinyModel } from "./tiny.ts"

const tiny = new TinyModel(doorsEnvironment() as Environment)

async function run(changes: Partial<EvaluateSetup> = {}) {
  const rollout = { maxCompletionTokens: 4, ...changes.rollout }
  return await evaluate({ ...(await tiny.open()), environment: openDoors(), tasks: 12, ...changes, rollout })
}

describe("an evaluation", () => {
  it("plays each test task once", async () => {
    const splits: string[] = []
    const base = openDoors()
    const environment: Environment = {
      ...base,
      tasks(split, random) {
        splits.push(split)
        return base.tasks(split, random)
      },
    }
    const told: string[] = []
    const report = await run({
      environment,
      onProgress: ({ stage, done, total }) => told.push(`${stage} ${done}/${total}`),
    })
    expect(splits).toEqual(["test"])
    expect(told).toEqual(Array.from({ length: 12 }, (_, index) => `evaluation ${index + 1}/12`))
    expect(report).toMatchObject({ episodes: 12, failed: 0 })
    expect(report.metrics.success).toBe(report.success)
    expect(report.metrics.rooms).toBe(report.meanReturn)
    expect(report.meanSteps).toBeGreaterThan(1)
    expect(report.successInterval).toEqual(wilsonInterval(report.success * 12, 12))
  })

  it("draws its tasks one by one, for any number, and stops when aborted", async () => {
    let drawn = 0
    const environment: Environment = {
      ...openDoors(),
      *tasks() {
        for (;;) yield { index: drawn++, rooms: ["red"] }
      },
    }
    const controller = new AbortController()
    const reason = new Error("enough")
    const onProgress = ({ done }: { done: number }) => done === 20 && controller.abort(reason)
    const endless = { environment, tasks: 1e9, signal: controller.signal }
    await expect(run({ ...endless, onProgress: (progress) => void onProgress(progress) })).rejects.toBe(reason)
    expect(drawn).toBeLessThan(1000)
    expect(getEventListeners(controller.signal, "abort")).toEqual([])
    // No reply fits: nothing is waited for.
    const maxCompletionTokens = (await tiny.open()).policy.maxPositions - 1
    const started = run({ ...endless, rollout: { maxCompletionTokens }, signal: AbortSignal.timeout(50) })
    await expect(started).rejects.toMatchObject({ name: "TimeoutError" })
  })

  it("fails if the environment throws for a further task", async () => {
    const environment: Environment = {
      ...openDoors(),
      *tasks() {
        yield { index: 0, rooms: ["red"] }
        throw new Error("no more levels")
      },
    }
    await expect(run({ environment })).rejects.toMatchObject({
      code: "ENVIRONMENT_FAILED",
      message: "doors: no more levels",
    })
  })

  it("is determined by the seed, for any concurrency", async () => {
    const one = await run({ seed: 5, temperature: 1 })
    for (const concurrency of [1, 5])
      expect(await run({ seed: 5, temperature: 1, rollout: { concurrency } })).toEqual(one)
    expect(await run({ seed: 6, temperature: 1 })).not.toEqual(one)
  })

  it("at temperature 0 depends only on the tasks", async () => {
    const rooms = [
      { index: 0, rooms: ["red", "blue", "green"] },
      { index: 1, rooms: ["blue", "green", "green"] },
    ]
    const environment: Environment = { ...openDoors(), tasks: () => rooms }
    const results = []
    for (const seed of [1, 2, 3]) results.push(await run({ seed, environment, temperature: 0 }))
    expect(results[1]).toEqual(results[0])
    expect(results[2]).toEqual(results[0])
    expect(results[0]!.episodes).toBe(2)
  })

  it("counts failed episodes as unsuccessful and excludes them from means", async () => {
    const environment = openDoors({
      parse: () => ({ action: "right", valid: true }),
      step: async (_, episode, task) => {
        if (task.index % 3 === 0) throw new Error("no server")
        const observation = episode.first
        return { observation, reward: 2, terminated: true, truncated: false, metrics: { success: 1, clicks: 7 } }
      },
    })
    expect(await run({ environment })).toEqual({
      episodes: 12,
      failed: 4 / 12,
      failures: [expect.objectContaining({ reason: "doors: no server", count: 4, environment: "doors" })],
      success: 8 / 12,
      successInterval: wilsonInterval(8, 12),
      meanReturn: 2,
      meanSteps: 1,
      metrics: { success: 8 / 12, clicks: 7 },
      valid: 1,
      completionsTruncated: 1,
    })
  })

  it("averages each metric over the episodes that have it; without the metric success is 0", async () => {
    const environment = openDoors({
      parse: () => ({ action: "right", valid: true }),
      step: async (_, { first: observation }, { index }) => {
        const kinds = [{ success: 1, "success/even": 1 }, { success: 0, "success/odd": 0 }, { clicks: 5 }]
        return { observation, reward: 0, terminated: true, truncated: false, metrics: kinds[index % 3]! as never }
      },
    })
    const report = await run({ environment })
    expect(report.success).toBe(4 / 12)
    expect(report.metrics).toEqual({ success: 4 / 12, "success/even": 1, "success/odd": 0, clicks: 5 })
  })

  it("of an environment that always fails, or reports no success, is a report too", async () => {
    const failing = openDoors({ start: () => Promise.reject(new Error("no server")) })
    expect(await run({ environment: failing })).toMatchObject({ episodes: 12, failed: 1, success: 0, meanReturn: 0 })
    const uncounted = openDoors({
      step: async (action, episode) => ({ ...(await episode.step(action)), metrics: undefined }),
    })
    expect(await run({ environment: uncounted })).toMatchObject({ episodes: 12, failed: 0, success: 0, metrics: {} })
  })

  it("rejects with the reason if aborted, and leaves the policy usable", async () => {
    const model = await tiny.open()
    const controller = new AbortController()
    const reason = new Error("Ctrl-C")
    const { signal } = controller
    const onProgress = ({ done }: { done: number }) => done === 3 && controller.abort(reason)
    await expect(run({ ...model, signal, onProgress, rollout: { concurrency: 2 } })).rejects.toBe(reason)
    expect(getEventListeners(signal, "abort")).toEqual([])
    expect(await run(model)).toMatchObject({ episodes: 12 })
  })

  it("uses defaults for undefined options", async () => {
    const model = await tiny.open()
    const { policy, tokenizer } = model
    const { vocabularySize, maxPositions, deterministic } = policy
    const sampledAt = new Set<number | undefined>()
    const sample = (request: SampleRequest) => {
      sampledAt.add(request.temperature)
      return policy.sample(request)
    }
    const listening = { vocabularySize, maxPositions, deterministic, sample }
    const plain = await run(model)
    expect(await run({ policy: listening, tokenizer, temperature: undefined, seed: undefined })).toEqual(plain)
    expect([...sampledAt]).toEqual([0.4])
  })

  it("rejects a tokenizer with more tokens than the model's vocabulary", async () => {
    const { policy, tokenizer } = await tiny.open()
    const small = new Proxy(policy, {
      get: (target, name) => (name === "vocabularySize" ? 100 : Reflect.get(target, name, target)),
    })
    await expect(run({ policy: small, tokenizer })).rejects.toMatchObject({ code: "BAD_TOKENIZER" })
  })
})

describe("Wilson's interval", () => {
  // (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n) with z = 1.959964, worked out with 30 digits.
  it.each([
    [8, 10, 0.490162, 0.943318],
    [0, 10, 0, 0.277533],
    [10, 10, 0.722467, 1],
    [50, 100, 0.403832, 0.596168],
    [1, 1, 0.206549, 1],
    [253, 256, 0.966118, 0.996007],
  ])("of %i out of %i is [%d, %d]", (successes, count, low, high) => {
    const [from, to] = wilsonInterval(successes, count)
    expect(from).toBeCloseTo(low, 6)
    expect(to).toBeCloseTo(high, 6)
  })

  it("is [0, 1] without episodes", () => {
    expect(wilsonInterval(0, 0)).toEqual([0, 1])
  })

  it("stays within [0, 1] and contains the share", () => {
    for (let count = 1; count <= 40; count++) {
      for (let successes = 0; successes <= count; successes++) {
        const [low, high] = wilsonInterval(successes, count)
        expect(low).toBeGreaterThanOrEqual(0)
        expect(low).toBeLessThanOrEqual(successes / count)
        expect(high).toBeGreaterThanOrEqual(successes / count)
        expect(high).toBeLessThanOrEqual(1)
      }
    }
  })
})

it("the mean of no values is 0", () => {
  expect([mean([]), mean([1, 2, 6])]).toEqual([0, 3])
})
