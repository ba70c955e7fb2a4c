import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { Run } from "../../../src/runs/run.ts"
import { checkFailures } from "../../../src/training/guards/failures.ts"
import type { TrainSetup } from "../../../src/training/prepare.ts"
import { train } from "../../../src/training/train.ts"
import { GigpoError } from "../../../src/util/errors.ts"
import { doorsEnvironment } from "../../rollout/doors.ts"
import { episode, step } from "../episodes.ts"
import { characters, TablePolicy } from "../table-policy.ts"
import { openDoors, timeless } from "../tiny.ts"

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-failures-"))
})
afterEach(() => rm(folder, { recursive: true }))

/** Starts fail where `fails` says so, by their number from 0. */
const setup = (fails: (start: number) => boolean, changes: Partial<TrainSetup> = {}) => {
  let started = 0
  return {
    policy: new TablePolicy(),
    tokenizer: characters,
    environment: openDoors({
      start: async (task, context) => {
        if (fails(started++)) throw new Error(`no server ${started}`)
        return await doorsEnvironment().start(task, context)
      },
    }),
    ...{ iterations: 3, groups: 2, groupSize: 4 },
    ...changes,
    rollout: { maxCompletionTokens: 2, concurrency: 1, ...changes.rollout },
  }
}

describe("an environment that fails three times in four", () => {
  const often = (start: number) => start >= 8 && start % 4 !== 0

  it("ends the run with environment, reason, count and first error; the last complete iteration is saved", async () => {
    await using run = await Run.open(join(folder, "run"), {})
    const error = await train({ ...setup(often), run }).then(undefined, (thrown) => thrown)
    expect(error).toMatchObject({
      code: "ENVIRONMENT_FAILED",
      message: expect.stringMatching(
        /^doors: 6 of 8 episodes of iteration 2 failed, more than the allowed share of 0\.5 \(guards\.maxFailed\)\. The first failed on task 0, \{"index":0,"rooms":\[.*\]\}: doors: no server 10\. Fix/,
      ),
      cause: { message: "doors: no server 10", cause: { message: "no server 10" } },
    })
    expect([run.iteration, run.saved]).toEqual([1, true])
  })

  it("does not end the run if the share is allowed, or if retries succeed", async () => {
    expect(await train(setup(often, { guards: { maxFailed: 0.75 } }))).toHaveLength(3)
    const reports = await train(setup(often, { rollout: { maxRetries: 3 } }))
    expect(reports.map(({ metrics }) => metrics["episode/failed"])).toEqual([0, 0, 0])
    expect(reports.map(({ metrics }) => metrics["episode/retried"])).toEqual([undefined, 7 / 8, 1])
  })

  it("ends the run also if hooks drop the failed groups", async () => {
    const hooks = { keep: ({ episodes }: { readonly episodes: readonly unknown[] }) => episodes.length === 0 }
    await expect(train(setup(() => false, { hooks }))).rejects.toThrow(/dropped all/)
    await expect(train(setup(() => true, { hooks }))).rejects.toThrow(/episodes of iteration 1 failed/)
  })
})

describe("the limit", () => {
  const group = (task: unknown, failed: number, sound: number, error?: GigpoError) => ({
    ...{ task, index: 3 },
    episodes: [
      ...Array.from({ length: failed }, () => episode([], { outcome: "failed", ...(error && { error }) })),
      ...Array.from({ length: sound }, () => episode([step("a", 1)])),
    ],
  })
  const error = new GigpoError("ENVIRONMENT_TIMEOUT", "late")

  it("is exclusive", () => {
    expect(() => checkFailures([group(0, 2, 2, error)], "x", 0.5, 1)).not.toThrow()
    expect(() => checkFailures([group(0, 3, 2, error)], "x", 0.5, 1)).toThrow(/^x: 3 of 5 .* task 3, 0: late\. Fix/)
    expect(() => checkFailures([group(0, 3, 0, error)], "x", 1, 1)).not.toThrow()
    expect(() => checkFailures([group(0, 1, 99, error)], "x", 0, 1)).toThrow(/1 of 100/)
    expect(() => checkFailures([], "x", 0, 1)).not.toThrow()
  })

  it("shortens the text of tasks, and accepts episodes that were failed without an error", () => {
    const circular: Record<string, unknown> = { text: "x".repeat(1e6) }
    circular.self = circular
    const texts = [circular, "y".repeat(1e6), Symbol("z"), new Proxy({}, { get: () => expect.unreachable() })].map(
      (task) => {
        try {
          checkFailures([group(task, 1, 0)], "x", 0.5, 1)
          return ""
        } catch (thrown) {
          expect(thrown).toMatchObject({ code: "ENVIRONMENT_FAILED" })
          return (thrown as Error).message
        }
      },
    )
    for (const text of texts) {
      expect(text).toContain("it has no error.")
      expect(text.length).toBeLessThan(500)
    }
  })
})

describe("groups with too few episodes", () => {
  /** Of the second group of every iteration only one episode is left. */
  const some = (start: number) => start % 8 > 4
  const guards = { maxFailed: 1, collapse: "off" as const }
  const rollout = { minGroupSize: 2 }

  it("are counted and not learned from", async () => {
    const learned: number[][] = []
    const estimator = (batch: { readonly length: number; readonly task: Int32Array; readonly episode: Int32Array }) => {
      learned.push([new Set(batch.task).size, new Set(batch.episode).size])
      return { advantages: new Float64Array(batch.length) }
    }
    const [report] = await train(setup(some, { iterations: 1, guards, rollout, estimator }))
    const [all] = await train(setup(some, { iterations: 1, guards, estimator }))
    expect(learned).toEqual([
      [1, 4],
      [2, 5],
    ])
    expect(report!.metrics).toMatchObject({ "group/too-small": 1, "episode/count": 8, "episode/failed": 3 / 8 })
    expect(all!.metrics["group/too-small"]).toBeUndefined()
    const { "group/too-small": _, ...same } = timeless(report!).metrics
    expect(same["episode/return"]).toBe(all!.metrics["episode/return"])
  })

  it("end the run if there are no others, with advice", async () => {
    const every = { guards, rollout: { minGroupSize: 4 } }
    await expect(train(setup((start) => start % 4 === 0, every))).rejects.toMatchObject({
      code: "BAD_ENVIRONMENT",
      message: expect.stringMatching(/^No group has 4 episodes that .* rollout\.minGroupSize/),
    })
    await expect(train(setup(some, { guards, rollout: { minGroupSize: 5 } }))).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: expect.stringMatching(/minGroupSize is 5, but groups have 4 episodes/),
    })
  })
})

it("success is the share of all episodes in training as in evaluation", async () => {
  const environment = openDoors({
    start: async (task, context) => {
      if (context.random.derive("fault").uniform() < 0.4) throw new Error("no server")
      const episode = await doorsEnvironment().start(task, context)
      const end = { reward: 1, terminated: true, truncated: false, metrics: { success: 1 } }
      return { ...episode, step: async () => ({ observation: episode.first, ...end }) }
    },
  })
  const evaluation = { every: 1, tasks: 20 }
  const reports = await train({ ...setup(() => false), environment, evaluation, guards: { maxFailed: 1 } })
  for (const { metrics, evaluation } of reports.map(timeless)) {
    if (metrics["episode/failed"] === undefined)
      expect(metrics).toEqual({}) // before the first iteration
    else expect(metrics["episode/success"]).toBeCloseTo(1 - metrics["episode/failed"], 12)
    expect(evaluation!.success).toBeCloseTo(1 - evaluation!.failed, 12)
    expect(evaluation!.metrics.success).toBe(evaluation!.success)
    expect(evaluation!.failed).toBeGreaterThan(0)
  }
})
