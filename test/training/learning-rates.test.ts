import { readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import type { AdamWParameters } from "../../src/engine/engine.ts"
import { Run, type RunMode } from "../../src/runs/run.ts"
import { sft } from "../../src/sft/sft.ts"
import type { TrainOptions } from "../../src/training/options.ts"
import { train } from "../../src/training/train.ts"
import { doorsEnvironment } from "../rollout/doors.ts"
import { openDoors, TinyModel } from "./tiny.ts"

// A learning rate that code leaves open, and the run that keeps it.

const environment = openDoors()
const tiny = new TinyModel(environment)
const options: TrainOptions = {
  ...{ iterations: 2, groups: 2, groupSize: 2, stepsPerUpdate: 4, seed: 3, checkpointEvery: 1 },
  rollout: { maxCompletionTokens: 3 },
  optimizer: { warmup: 0 },
}
const key = "optimizer.learningRate"

let folders = 0
const newFolder = () => join(tiny.folder, `rates-${folders++}`)
const config = async (directory: string) => JSON.parse(await readFile(join(directory, "config.json"), "utf8"))

/** As if the rule had been another when the run began. */
async function chose(directory: string, rate: unknown): Promise<void> {
  const old = await config(directory)
  await writeFile(join(directory, "config.json"), JSON.stringify({ ...old, settled: { ...old.settled, [key]: rate } }))
}

/** The rates of one process's part of a training. */
async function trained(directory: string, changes: TrainOptions = {}, mode: RunMode = {}): Promise<unknown[]> {
  await using run = await Run.open(directory, { options }, mode)
  const reports = await train({ ...(await tiny.open()), environment, ...options, ...changes, run })
  return reports.map(({ metrics }) => metrics["optimizer/learning-rate"])
}

describe("a run from code", () => {
  it("keeps its chosen learning rate, and continues with it", async () => {
    const directory = newFolder()
    expect(await trained(directory)).toEqual([1e-4, 1e-4])
    expect(await config(directory)).toMatchObject({ options, settled: { [key]: 1e-4 } })
    await chose(directory, 3e-5)
    expect(await trained(directory, { iterations: 3 }, { resume: true })).toEqual([3e-5])
    expect((await config(directory)).settled).toEqual({ [key]: 3e-5 })
  })

  it("keeps that of its critic, too", async () => {
    const directory = newFolder()
    await trained(directory, { iterations: 1, estimator: { name: "ppo" } })
    expect((await config(directory)).settled).toEqual({ [key]: 1e-4, "critic.optimizer.learningRate": 3e-4 })
  })

  it("uses a configured rate, and then chooses none", async () => {
    const directory = newFolder()
    await trained(directory)
    const given = { iterations: 3, optimizer: { warmup: 0, learningRate: 2e-3 } }
    expect(await trained(directory, given, { resume: true })).toEqual([2e-3])
    expect(await config(directory)).not.toHaveProperty("settled")
  })

  it("ignores invalid rates", async () => {
    const directory = newFolder()
    await trained(directory)
    await chose(directory, "fast")
    expect(await trained(directory, { iterations: 3 }, { resume: true })).toEqual([1e-4])
  })

  it("does the same in supervised fine-tuning", async () => {
    const directory = newFolder()
    const cloned = async (epochs: number, mode: RunMode = {}) => {
      const model = await tiny.open()
      const rates: number[] = []
      const optimizerStep = async (step: AdamWParameters) => {
        rates.push(step.learningRate)
        return await model.policy.optimizerStep(step)
      }
      const policy: typeof model.policy = new Proxy(model.policy, {
        get: (target, name) => {
          const value = Reflect.get(target, name, target)
          if (name === "optimizerStep") return optimizerStep
          return typeof value === "function" ? value.bind(target) : value
        },
      })
      await using run = await Run.open(directory, {}, mode)
      const optimizer = { schedule: "constant", warmup: 0 } as const
      await sft({
        ...model,
        policy,
        environment: doorsEnvironment(),
        tasks: 4,
        epochs,
        completionsPerUpdate: 4,
        optimizer,
        run,
      })
      return new Set(rates)
    }
    expect(await cloned(1)).toEqual(new Set([3e-4]))
    expect((await config(directory)).settled).toEqual({ [key]: 3e-4 })
    await chose(directory, 1e-5)
    expect(await cloned(2, { resume: true })).toEqual(new Set([1e-5]))
  })
})
