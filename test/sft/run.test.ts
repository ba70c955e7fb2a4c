import { readdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import type { NativePolicyOptions } from "../../src/engine/native/options.ts"
import type { Environment } from "../../src/environment/environment.ts"
import type { IterationReport } from "../../src/runs/report.ts"
import { Run, type RunMode } from "../../src/runs/run.ts"
import type { SftOptions } from "../../src/sft/options.ts"
import { type SftReport, sft } from "../../src/sft/sft.ts"
import type { StageProgress } from "../../src/training/progress.ts"
import { doorsEnvironment } from "../rollout/doors.ts"
import { TinyModel } from "../training/tiny.ts"

const doors = doorsEnvironment() as Environment
const tiny = new TinyModel(doors)
const reason = new Error("Ctrl-C")

/** Nine steps, with all state that a resume must restore: moments, a schedule, the order of batches, means over an epoch. */
const options: SftOptions = {
  tasks: 8,
  epochs: 3,
  completionsPerUpdate: 9,
  seed: 2,
  optimizer: { learningRate: 3e-3, warmup: 0.5, schedule: "cosine" },
}

let folders = 0
const newFolder = () => join(tiny.folder, `cloning-${folders++}`)

interface Part extends RunMode, SftOptions {
  readonly directory?: string
  readonly model?: NativePolicyOptions
  /** Aborts once so many steps are done. */
  readonly abortAt?: number
  readonly leaveAfter?: number
  readonly environment?: Environment
}

/** One process's part of a cloning. */
async function part({ directory, model: opened = {}, abortAt, leaveAfter, resume, fork, ...changes }: Part) {
  const model = await tiny.open(tiny.directory, opened)
  await using run = directory === undefined ? undefined : await Run.open(directory, { options }, { resume, fork })
  const controller = new AbortController()
  const onProgress = ({ stage, done }: StageProgress) => stage === "sft" && done === abortAt && controller.abort(reason)
  const reports: Omit<SftReport, "seconds">[] = []
  let error: unknown
  const setup = { ...model, environment: doors, run, signal: controller.signal, onProgress, ...options, ...changes }
  try {
    for await (const { seconds: _, ...report } of sft(setup)) {
      reports.push(report)
      if (report.epoch === leaveAfter) break
    }
  } catch (thrown) {
    error = thrown
  }
  const moments = join(newFolder(), "..", `moments-${folders++}.safetensors`)
  await model.policy.saveOptimizer(moments)
  const end = { weights: await tiny.weights(model.policy), moments: await readFile(moments, "base64") }
  return { error, reports, end, iteration: run?.iteration }
}

async function log(directory: string): Promise<IterationReport[]> {
  const lines = (await readFile(join(directory, "metrics.jsonl"), "utf8")).trim().split("\n")
  return lines.map((line) => JSON.parse(line))
}

const steps = async (directory: string) => await readdir(join(directory, "checkpoints"))

describe("SFT with a run", () => {
  it("gives the same results as without, logs a line per epoch and keeps its last checkpoint", async () => {
    const directory = newFolder()
    const [without, kept] = [await part({}), await part({ directory })]
    expect(kept.reports).toEqual(without.reports)
    expect(kept.end).toEqual(without.end)
    expect(await steps(directory)).toEqual(["update-9"])
    const lines = await log(directory)
    expect(lines.filter((line) => "iteration" in line)).toEqual([])
    expect(lines).toMatchObject(
      without.reports.map(({ epoch, loss }) => ({
        update: 3 * epoch,
        metrics: { "sft/epoch": epoch, "sft/loss": loss, "sft/completions": 24, "time/epoch": expect.any(Number) },
      })),
    )
  })

  it.each([
    ["all weights", {}],
    ["an adapter", { lora: { rank: 3, alpha: 5 } }],
  ] as [string, NativePolicyOptions][])(
    "of %s, stopped anywhere, saves the last complete step and resumes with bit-identical results",
    async (_, model) => {
      const whole = await part({ model })
      for (const abortAt of [1, 5, 6, 9]) {
        const directory = newFolder()
        const stopped = await part({ directory, model, abortAt })
        // After the very last step there is nothing left to stop.
        expect(stopped.error).toBe(abortAt === 9 ? undefined : reason)
        expect(stopped.iteration).toBe(abortAt)
        expect(await steps(directory)).toEqual([`update-${abortAt}`])
        const resumed = await part({ directory, model, resume: true })
        expect(resumed.error).toBeUndefined()
        expect([...stopped.reports, ...resumed.reports]).toEqual(whole.reports)
        expect(resumed.end).toEqual(whole.end)
        expect((await log(directory)).map(({ metrics }) => metrics["sft/loss"])).toEqual(
          whole.reports.map(({ loss }) => loss),
        )
      }
    },
  )

  it("continues with the next epoch if its loop was left", async () => {
    const [directory, whole] = [newFolder(), await part({})]
    const left = await part({ directory, leaveAfter: 2, checkpointEvery: 3 })
    expect(left).toMatchObject({ error: undefined, iteration: 6 })
    const resumed = await part({ directory, resume: true })
    expect(resumed.reports).toEqual(whole.reports.slice(2))
    expect(resumed.end).toEqual(whole.end)
  })

  it("that is complete yields nothing more", async () => {
    const directory = newFolder()
    const whole = await part({ directory })
    expect(await part({ directory, resume: true })).toMatchObject({ reports: [], end: whole.end, iteration: 9 })
  })

  it("is not resumed with other steps, and cannot be forked", async () => {
    const directory = newFolder()
    await part({ directory, abortAt: 4 })
    for (const change of [{ tasks: 7 }, { completionsPerUpdate: 12 }, { seed: 3 }]) {
      const { error, reports } = await part({ directory, resume: true, ...change })
      expect(error, JSON.stringify(change)).toMatchObject({
        code: "BAD_CONFIG",
        message: expect.stringMatching(/was started with other options: (tasks|completionsPerUpdate|seed) was/),
      })
      expect(reports).toEqual([])
    }
    const { error } = await part({ directory: newFolder(), fork: directory })
    expect(error).toMatchObject({ code: "BAD_ARGUMENT", message: expect.stringMatching(/cannot be forked/) })
    expect((await part({ directory, resume: true })).end).toEqual((await part({})).end)
  })

  it("is rejected for lack of memory before the expert plays", async () => {
    const { policy, tokenizer } = await tiny.open()
    const directory = newFolder()
    await using run = await Run.open(directory, {})
    const bytes = { model: 1, checkpoint: 1e18 }
    const full = new Proxy(policy, {
      get: (target, key) => {
        const value = Reflect.get(target, key, target)
        if (key === "store") return { ...policy.store, bytes }
        return typeof value === "function" ? value.bind(target) : value
      },
    })
    const environment = doorsEnvironment({ start: () => Promise.reject(new Error("was played")) }) as Environment
    await expect(sft({ policy: full, tokenizer, environment, run, ...options })).rejects.toMatchObject({
      code: "IO",
      message: expect.stringMatching(/will need about .* but the disk has/),
    })
    expect(run.begun).toBe(false)
    const needed = policy.store.bytes!
    expect(needed).toEqual({ model: 4 * policy.parameters, checkpoint: 12 * policy.parameters })
    const adapted = await tiny.open(tiny.directory, { lora: { rank: 1 } })
    expect(adapted.policy.store.bytes!.model).toBe(needed.model)
    expect(adapted.policy.store.bytes!.checkpoint).toBeLessThan(needed.checkpoint / 10)
  })

  it("that diverges reports this and keeps its last good checkpoint", async () => {
    const directory = newFolder()
    const learningRate = { from: 3e-3, to: 1e30, over: 1, after: 1 }
    const { error } = await part({ directory, optimizer: { learningRate } })
    expect(error).toMatchObject({
      code: "NON_FINITE",
      message: expect.stringMatching(/gradients of step 6 .* are not/),
    })
    expect(await steps(directory)).toEqual(["update-3"])
  })
})
