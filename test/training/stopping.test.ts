import { getEventListeners } from "node:events"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import type { Environment } from "../../src/environment/environment.ts"
import type { IterationReport } from "../../src/runs/report.ts"
import { Run } from "../../src/runs/run.ts"
import type { TrainOptions } from "../../src/training/options.ts"
import type { StageProgress } from "../../src/training/progress.ts"
import { train } from "../../src/training/train.ts"
import { doorsEnvironment } from "../rollout/doors.ts"
import { all, openDoors, TinyModel, timeless } from "./tiny.ts"

// Runs that stop in the middle, in every way there is, and go on as if they had not.

const tiny = new TinyModel(doorsEnvironment() as Environment)
const reason = new Error("Ctrl-C")

/** With all that a resumed run could get wrong: moments, a schedule, a reference policy, more than one epoch. */
const options: TrainOptions = {
  iterations: 4,
  groups: 3,
  groupSize: 3,
  stepsPerUpdate: 8,
  epochs: 2,
  seed: 3,
  rollout: { maxCompletionTokens: 4 },
  loss: { klWeight: 0.1 },
  optimizer: { learningRate: 5e-3, warmup: 1, schedule: "cosine" },
  evaluation: { every: 2, tasks: 3, temperature: 1 },
  checkpointEvery: 100,
}

let folders = 0
const newFolder = () => join(tiny.folder, `run-${folders++}`)

interface Part {
  readonly directory: string
  readonly resume?: boolean
  readonly environment?: Environment
  /** Aborts where it says so; `iteration` counts those that were given out before. */
  readonly abortAt?: (progress: StageProgress, iteration: number) => boolean
  /** Leaves the loop after this iteration. */
  readonly leaveAfter?: number
}

/** One process's part of a run. */
async function part({ directory, resume = false, abortAt, leaveAfter, ...changes }: Part) {
  const model = await tiny.open()
  await using run = await Run.open(directory, { training: options }, { resume })
  const controller = new AbortController()
  const { signal } = controller
  const reports: IterationReport[] = []
  let error: unknown
  try {
    for await (const report of train({
      ...model,
      environment: openDoors(),
      ...options,
      ...changes,
      run,
      signal,
      onProgress: (progress) => abortAt?.(progress, reports.length - 1) && controller.abort(reason),
    })) {
      reports.push(report)
      if (report.iteration === leaveAfter) break
    }
  } catch (thrown) {
    error = thrown
  }
  expect(getEventListeners(signal, "abort")).toEqual([])
  return { error, reports, saved: run.iteration, weights: await tiny.weights(model.policy), ...model }
}

async function log(directory: string): Promise<IterationReport[]> {
  const lines = (await readFile(join(directory, "metrics.jsonl"), "utf8")).trim().split("\n")
  return lines.map((line) => timeless(JSON.parse(line)))
}

/** The same run without a stop. */
async function uninterrupted() {
  const directory = newFolder()
  const { weights, reports, saved } = await part({ directory })
  expect(saved).toBe(4)
  return { weights, lines: await log(directory), reports }
}
const whole = (() => {
  let result: ReturnType<typeof uninterrupted> | undefined
  return () => {
    result ??= uninterrupted()
    return result
  }
})()

describe("a run", () => {
  it("logs the time of each line", async () => {
    const { reports } = await whole()
    const times = reports.map(({ time }) => time!)
    for (const time of times) expect(new Date(time).toISOString()).toBe(time)
    expect(times).toEqual(times.toSorted())
    const taken = reports.map(({ metrics }) => metrics["time/run"]!)
    expect(taken).toEqual(taken.toSorted((a, b) => a - b))
  })

  it("logs each report as one line", async () => {
    const { lines, reports } = await whole()
    expect(lines.map(({ iteration }) => iteration)).toEqual([0, 1, 2, 3, 4])
    expect(lines).toEqual(reports.map(timeless))
  })

  it("writes a checkpoint every n iterations and after the last, before it yields the report", async () => {
    const model = await tiny.open()
    await using run = await Run.open(newFolder(), {})
    const saved: number[] = []
    const training = train({
      ...model,
      environment: openDoors(),
      run,
      ...options,
      iterations: 5,
      checkpointEvery: 2,
      evaluation: {},
    })
    for await (const _ of training) saved.push(run.iteration)
    expect(saved).toEqual([0, 2, 2, 4, 5])
  })

  it("that is complete does nothing when resumed", async () => {
    const directory = newFolder()
    const once = await part({ directory })
    const again = await part({ directory, resume: true })
    expect(again).toMatchObject({ reports: [], error: undefined, weights: once.weights })
  })
})

describe("a stopped and resumed run ends as without interruption", () => {
  it.each<[string, Omit<Part, "directory">, number]>([
    ["aborted in a rollout", { abortAt: ({ stage, done }, at) => stage === "rollout" && at === 2 && done === 4 }, 2],
    ["aborted in an update", { abortAt: ({ stage, done }, at) => stage === "update" && at === 0 && done === 1 }, 1],
    ["left by its consumer", { leaveAfter: 3 }, 3],
  ])("when it was %s", async (_, stop, saved) => {
    const directory = newFolder()
    const first = await part({ directory, ...stop })
    expect(first.error).toBe("abortAt" in stop ? reason : undefined)
    expect(first.saved).toBe(saved)
    const second = await part({ directory, resume: true })
    expect(second.error).toBeUndefined()
    const { weights, lines } = await whole()
    expect(second.weights).toBe(weights)
    expect(await log(directory)).toEqual(lines)
  })

  it.each([
    [2, 1],
    [4, 3],
  ])(
    "when it was aborted in the evaluation after iteration %i, the line of which it then replaces",
    async (iteration, at) => {
      const directory = newFolder()
      const first = await part({ directory, abortAt: ({ stage }, given) => stage === "evaluation" && given === at })
      expect(first).toMatchObject({ error: reason, saved: iteration })
      expect(first.reports).toHaveLength(iteration)
      const stopped = (await log(directory)).at(-1)!
      expect([stopped.iteration, stopped.evaluation]).toEqual([iteration, undefined])
      // Once more, before it is made up for.
      const again = await part({ directory, resume: true, abortAt: ({ stage }) => stage === "evaluation" })
      expect(again).toMatchObject({ error: reason, reports: [], saved: iteration })
      const second = await part({ directory, resume: true })
      const { weights, lines, reports } = await whole()
      expect(second.weights).toBe(weights)
      expect(second.reports.map(timeless)).toEqual(reports.slice(iteration).map(timeless))
      expect(await log(directory)).toEqual(lines)
      expect(await part({ directory, resume: true })).toMatchObject({ reports: [], error: undefined })
    },
  )

  it("if its environment failed temporarily", async () => {
    const directory = newFolder()
    let asked = 0
    const environment = openDoors({
      start: async (task, context) => {
        // The evaluations before and after, and two iterations' rollouts, are fine.
        if (++asked > 3 + 9 + 9 + 3) throw new Error("no server")
        return await doorsEnvironment().start(task, context)
      },
    })
    const first = await part({ directory, environment })
    expect(first).toMatchObject({ error: { code: "ENVIRONMENT_FAILED" }, saved: 2 })
    const second = await part({ directory, resume: true })
    const { weights, lines } = await whole()
    expect(second.weights).toBe(weights)
    expect(await log(directory)).toEqual(lines)
  })
})

describe("a stopped run", () => {
  it("completes the update in progress", async () => {
    const updates: string[] = []
    const { reports, error } = await part({
      directory: newFolder(),
      abortAt: ({ stage, done, total }) => {
        if (stage === "update") updates.push(`${done}/${total}`)
        return stage === "update"
      },
    })
    expect(error).toBe(reason)
    expect(updates.length).toBeGreaterThan(1)
    expect(updates.at(-1)).toBe(`${updates.length}/${updates.length}`)
    expect(reports.map(({ iteration }) => iteration)).toEqual([0, 1])
  })

  it("in its first iteration saves nothing", async () => {
    const directory = newFolder()
    const { error, saved, reports, weights } = await part({ directory, abortAt: ({ stage }) => stage === "rollout" })
    expect({ error, saved }).toEqual({ error: reason, saved: 0 })
    expect(reports.map(({ iteration }) => iteration)).toEqual([0])
    expect(weights).toBe(await tiny.weights((await tiny.open()).policy))
  })

  it("leaves the policy usable", async () => {
    const { policy, tokenizer } = await part({ directory: newFolder(), abortAt: ({ stage }) => stage === "rollout" })
    const more = train({ policy, tokenizer, environment: openDoors(), ...options, iterations: 1 })
    expect(await all(more)).toHaveLength(2)
  })

  it("by a failing update keeps the previous iteration, not a partial one", async () => {
    const model = await tiny.open()
    await using run = await Run.open(newFolder(), {})
    let [given, steps] = [0, 0]
    const policy = new Proxy(model.policy, {
      get(target, name) {
        if (name === "optimizerStep" && given === 2 && ++steps === 2) throw new Error("out of memory")
        const value = Reflect.get(target, name, target)
        return typeof value === "function" ? value.bind(target) : value
      },
    })
    const training = async () => {
      for await (const _ of train({ ...model, policy, environment: openDoors(), ...options, run })) given++
    }
    await expect(training()).rejects.toThrow("out of memory")
    expect([given, run.iteration]).toEqual([2, 0])
  })
})
