import { EventEmitter, once } from "node:events"
import { cp, mkdtemp, readdir, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { stepSequence } from "../../src/engine/sequence.ts"
import type { Environment } from "../../src/environment/environment.ts"
import type { RolloutHooks, TaskSource } from "../../src/rollout/hooks.ts"
import type { IterationReport } from "../../src/runs/report.ts"
import { Run } from "../../src/runs/run.ts"
import type { TrainSetup } from "../../src/training/prepare.ts"
import { train } from "../../src/training/train.ts"
import { SnapshotPolicy } from "./snapshot-policy.ts"
import { TablePolicy } from "./table-policy.ts"
import { tableSetup } from "./table-setup.ts"
import { openDoors, timeless } from "./tiny.ts"

// One-step-off policy: each rollout runs during the updates before it.

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-staleness-"))
})
afterEach(() => rm(folder, { recursive: true }))

const setup = (changes: Partial<TrainSetup> = {}) => ({
  ...tableSetup({
    policy: new SnapshotPolicy(),
    maxStaleness: 1,
    iterations: 4,
    stepsPerUpdate: 1000,
    ...(changes as object),
  }),
})

/** Runs a training in a folder. `each` is called with every report, and ends the training by returning true. */
async function part(
  directory: string,
  changes: Partial<TrainSetup> = {},
  { resume = false, each = () => {} }: { resume?: boolean; each?: (report: IterationReport) => unknown } = {},
) {
  const policy = new SnapshotPolicy()
  await using run = await Run.open(directory, {}, { resume, onWarning: () => {} })
  for await (const report of train({ ...setup({ policy, ...changes }), run, onWarning: () => {} }))
    if ((await each(report)) === true) break
  const reports = (await run.reports()).map(timeless)
  return { policy, reports, weights: Buffer.from(policy.logits.buffer).toString("base64") }
}

/** Copies the folder of a run, as a killed process leaves it. */
async function killed(name: string): Promise<string> {
  const copy = join(folder, name)
  const isLock = (path: string) => path.endsWith(".lock") || path.endsWith("/lock")
  await cp(join(folder, "run"), copy, { recursive: true, filter: (path) => !isLock(path) })
  return copy
}

/** Source of tasks with a state that changes whenever a task is drawn. */
function countingTasks(): TaskSource {
  let drawn = 0
  return {
    next: ({ random }) => ({ index: drawn++, rooms: [random.below(2) === 0 ? "red" : "blue", "green"] }),
    state: () => ({ json: { drawn } }),
    restore: ({ json }) => {
      drawn = (json as { drawn: number }).drawn
    },
  }
}

describe("rollouts", () => {
  it("have the weights before the last update, and the staleness is recorded", async () => {
    const policy = new SnapshotPolicy()
    const reports = await train(setup({ policy }))
    expect(policy.taken).toEqual([0, 0, 1, 2])
    expect([...new Set(policy.sampled)]).toEqual([0, 1, 2])
    expect(reports.map(({ metrics }) => metrics["rollout/staleness"])).toEqual([0, 1, 1, 1])
    expect(reports.every(({ metrics }) => metrics["time/rollout"]! >= 0 && metrics["time/rollout-wait"]! >= 0)).toBe(
      true,
    )
    expect(policy.open).toBe(0)
  })

  it("run during the update", async () => {
    const policy = new SnapshotPolicy()
    const updates = new EventEmitter()
    const updated = Array.from({ length: 4 }, (_, steps) => once(updates, String(steps)))
    policy.beforeStep = () => updates.emit(String(policy.steps))
    let iteration = -1
    const environment = openDoors() as Environment
    const tasks = environment.tasks.bind(environment)
    const waiting: Environment = {
      ...environment,
      *tasks(split, random) {
        iteration++
        yield* tasks(split, random)
      },
      start: async (task, context) => {
        if (iteration > 0) await updated[iteration - 1] // a synchronous training would wait here without end
        return await environment.start(task, context)
      },
    }
    expect(await train(setup({ policy, environment: waiting }))).toHaveLength(4)
  })

  it("are those of a synchronous training in the first iteration, and differ by the staleness later", async () => {
    const [first, second] = (await train(setup())).map(timeless)
    const synchronous = await train({ ...setup(), maxStaleness: 0 })
    const [before, after] = synchronous.map(timeless)
    expect(first).toEqual({ ...before, metrics: { ...before!.metrics, "rollout/staleness": 0 } })
    expect(second!.metrics["mismatch/kl"]).not.toBe(after!.metrics["mismatch/kl"])
    expect(synchronous.every(({ metrics }) => !("rollout/staleness" in metrics))).toBe(true)
  })

  it("count as off-policy data: importance weights correct recomputed log-probabilities", async () => {
    const changes = { oldLogProbs: "recomputed", rolloutCorrection: { truncate: 2 } } as const
    const reports = await train(setup(changes))
    expect(reports[0]!.metrics["mismatch/kl"]).toBeCloseTo(0, 5)
    expect(Math.abs(reports[1]!.metrics["mismatch/kl"]!)).toBeGreaterThan(1e-4)
  })
})

describe("a resumed run continues as without the interruption", () => {
  const changes = { checkpointEvery: 1, keepCheckpoints: 10, tasks: countingTasks() }
  const again = () => ({ ...changes, tasks: countingTasks() })

  it("where its loop was left", async () => {
    const whole = await part(join(folder, "whole"), again())
    for (const last of [1, 2, 3]) {
      const directory = join(folder, `left-${last}`)
      const left = await part(directory, again(), { each: ({ iteration }) => iteration === last })
      expect(left.policy.open).toBe(0)
      const resumed = await part(directory, again(), { resume: true })
      expect(resumed.reports).toEqual(whole.reports)
      expect(resumed.weights).toBe(whole.weights)
    }
  })

  it("where its process was killed between reports and during updates", async () => {
    const copies: Promise<string>[] = []
    const policy = new SnapshotPolicy()
    policy.beforeStep = async () => {
      if (policy.steps > 0) copies.push(killed(`update-${policy.steps}`))
      await copies.at(-1)
    }
    const each = async ({ iteration }: IterationReport) => {
      copies.push(killed(`report-${iteration}`))
      await copies.at(-1)
    }
    const whole = await part(join(folder, "run"), { ...again(), policy }, { each })
    const weights = Buffer.from(policy.logits.buffer).toString("base64")
    expect(copies).toHaveLength(7)
    for (const copy of copies) {
      const resumed = await part(await copy, again(), { resume: true })
      expect(resumed.reports).toEqual(whole.reports)
      expect(resumed.weights).toBe(weights)
    }
  })

  it("where it was aborted in the wait for a rollout, with checkpoints at the end only", async () => {
    const rare = () => ({ ...again(), checkpointEvery: 100, evaluation: { every: 1, tasks: 2 } })
    const whole = await part(join(folder, "whole"), rare())
    for (const draws of [4, 7, 10]) {
      const directory = join(folder, `aborted-${draws}`)
      const stop = new AbortController()
      const source = countingTasks()
      let drawn = 0
      const next: TaskSource["next"] = (context) => {
        if (++drawn === draws) stop.abort(new Error("enough"))
        return source.next(context)
      }
      await expect(part(directory, { ...rare(), tasks: { ...source, next }, signal: stop.signal })).rejects.toThrow(
        "enough",
      )
      const resumed = await part(directory, rare(), { resume: true })
      expect(resumed.reports).toEqual(whole.reports)
      expect(resumed.weights).toBe(whole.weights)
    }
  })

  it("after early stopping, once the limit is raised", async () => {
    const whole = await part(join(folder, "whole"), again())
    const directory = join(folder, "stopped")
    const seconds = { stop: { seconds: 1e-9 } }
    const stopped = await part(directory, { ...again(), ...seconds })
    expect(stopped.reports).toHaveLength(1)
    expect(stopped.policy.open).toBe(0)
    const resumed = await part(directory, again(), { resume: true })
    const plain = ({ stopped: _, ...report }: IterationReport) => report
    expect(resumed.reports.map(plain)).toEqual(whole.reports)
    expect(resumed.weights).toBe(whole.weights)
  })
})

it("an error of a rollout ends the training after the iteration before, which is saved", async () => {
  const directory = join(folder, "run")
  let drawn = 0
  const source = countingTasks()
  const tasks: TaskSource = {
    ...source,
    next: (context) => {
      if (++drawn > 6) throw new Error("no more")
      return source.next(context)
    },
  }
  const unhandled: unknown[] = []
  const note = (error: unknown) => void unhandled.push(error)
  process.on("unhandledRejection", note)
  try {
    const reports: number[] = []
    const each = async ({ iteration }: IterationReport) => {
      reports.push(iteration)
      await new Promise((resolve) => setTimeout(resolve, 20)) // the rollout fails while the report is handled
    }
    await expect(part(directory, { tasks }, { each })).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: expect.stringContaining("no more"),
    })
    expect(reports).toEqual([1, 2])
    expect(await readdir(join(directory, "checkpoints"))).toEqual(["iteration-2"])
  } finally {
    process.off("unhandledRejection", note)
  }
  expect(unhandled).toEqual([])
})

it("an error of an update ends the rollout in progress, and a resumed run repeats both", async () => {
  const directory = join(folder, "run")
  const policy = new SnapshotPolicy()
  policy.beforeStep = () => {
    if (policy.steps === 2) throw new Error("the step failed")
  }
  let running = 0
  const environment = openDoors() as Environment
  const counted: Environment = {
    ...environment,
    start: async (task, context) => {
      running++
      const episode = await environment.start(task, context)
      return { ...episode, [Symbol.asyncDispose]: async () => void running-- }
    },
  }
  await expect(part(directory, { policy, environment: counted, checkpointEvery: 1 })).rejects.toThrow("the step failed")
  expect({ running, open: policy.open, taken: policy.taken }).toEqual({ running: 0, open: 0, taken: [0, 0, 1, 2] })
  expect((await readdir(join(directory, "checkpoints"))).sort()).toEqual(["iteration-1", "iteration-2"])
  policy.beforeStep = () => {}
  const resumed = await part(directory, { checkpointEvery: 1 }, { resume: true })
  const whole = await part(join(folder, "whole"))
  expect(resumed.reports).toEqual(whole.reports)
  expect(resumed.weights).toBe(whole.weights)
})

it("a hook gets log-probabilities from the weights that play", async () => {
  const policy = new SnapshotPolicy()
  const apart: number[] = []
  const score: RolloutHooks["score"] = async ({ episodes }, context) => {
    const steps = episodes.flatMap((episode) => episode.steps)
    const rows = steps.map(({ prompt, completion }) => stepSequence(prompt, completion))
    const { logProbs } = await context.policy!.logProbs!(rows)
    const sampled = steps.flatMap((step) => [...step.logProbs])
    apart.push(...sampled.map((one, at) => Math.abs(one - logProbs[at]!)))
    return episodes
  }
  await train(setup({ policy, hooks: { score } }))
  expect([...new Set(policy.scored)]).toEqual([0, 1, 2])
  expect(apart.length).toBeGreaterThan(0)
  expect(Math.max(...apart)).toBeLessThan(1e-5)
})

it("a snapshot without log-probabilities is rejected before it plays", async () => {
  const policy = new SnapshotPolicy()
  const { take } = policy.snapshots
  const without = async () => ({ ...(await take()), logProbs: undefined })
  Object.assign(policy.snapshots, { take: without })
  await expect(train(setup({ policy }))).rejects.toThrow(/snapshot of policy.snapshots.logProbs must be a function/)
  expect(policy.sampled).toEqual([])
})

it.each([
  [{ policy: new TablePolicy() }, /set maxStaleness to 0, or train on a remote engine/],
  [{ oldLogProbs: "recomputed" }, /set rolloutCorrection to \{\}, or oldLogProbs to "sampled"/],
  [{ loss: { name: "reinforce" } }, /set oldLogProbs to "recomputed" and rolloutCorrection to \{\}/],
  [{ maxStaleness: 2 }, /maxStaleness/],
] as const)("what cannot work is rejected before anything is written: %#", async (changes, message) => {
  const directory = join(folder, "refused")
  await expect(part(directory, changes as Partial<TrainSetup>)).rejects.toMatchObject({
    code: "BAD_ARGUMENT",
    message: expect.stringMatching(message),
  })
  await expect(readdir(directory)).rejects.toMatchObject({ code: "ENOENT" })
})

it("an object with a state in both the rollout and the updates is rejected", async () => {
  const both = { ...countingTasks(), name: "both", evaluate: () => ({ loss: 0, gradient: new Float32Array() }) }
  await expect(train(setup({ tasks: both, loss: { use: both } }))).rejects.toThrow(/the same object is loss and tasks/)
})
