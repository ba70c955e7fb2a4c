import { mkdtemp, readdir, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Run, type RunOptions } from "../../src/runs/run.ts"
import { sft } from "../../src/sft/sft.ts"
import type { TrainOptions } from "../../src/training/options.ts"
import { train } from "../../src/training/train.ts"
import { TablePolicy } from "../training/table-policy.ts"
import { tableSetup } from "../training/table-setup.ts"
import { openReadableDoors } from "../training/tiny.ts"

let folder: string
let count = 0
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-options-"))
})
afterAll(async () => await rm(folder, { recursive: true }))
const place = () => join(folder, `run-${count++}`)

const base: TrainOptions = {
  iterations: 2,
  groups: 2,
  groupSize: 3,
  stepsPerUpdate: 8,
  rollout: { maxCompletionTokens: 2 },
  optimizer: { learningRate: 5 },
}
const { policy: _, tokenizer, environment } = tableSetup()
const setup = () => ({ policy: new TablePolicy(), tokenizer, environment })

async function trained(directory: string, stated: object, given: TrainOptions, mode: RunOptions = {}): Promise<void> {
  await using run = await Run.open(directory, stated, mode)
  await train({ ...setup(), run, ...given })
}

/** Each differs from `base` in what is named. */
const others: readonly (readonly [key: string, options: TrainOptions, inRun: string, given: string])[] = [
  ["groups", { groups: 3 }, "2", "3"],
  ["groupSize", { groupSize: 4 }, "3", "4"],
  ["iterations", { iterations: 1 }, "2", "1"],
  ["rollout.maxCompletionTokens", { rollout: { maxCompletionTokens: 3 } }, "2", "3"],
  ["rollout.temperature", { rollout: { maxCompletionTokens: 2, temperature: 0.5 } }, "1", "0.5"],
  ["optimizer.learningRate", { optimizer: { learningRate: 4 } }, "5", "4"],
  ["optimizer.maxGradientNorm", { optimizer: { learningRate: 5, maxGradientNorm: 2 } }, "1", "2"],
]

describe("a run whose options differ from those passed to train", () => {
  it.each(others)("is rejected: %s", async (key, change, inRun, given) => {
    const directory = place()
    const told = `${key} is ${inRun} in the run, but ${given} in train`
    await expect(trained(directory, base, { ...base, ...change })).rejects.toMatchObject({
      code: "BAD_CONFIG",
      message: expect.stringContaining(told),
    })
    expect(await readdir(folder)).not.toContain(directory.slice(folder.length + 1))
    await expect(trained(directory, { training: base }, { ...base, ...change })).rejects.toThrow(told)
  })

  it("is rejected with all differences at once, and with those that only the run states", async () => {
    const stated = { ...base, groups: 3, seed: 7 }
    await expect(trained(place(), stated, base)).rejects.toThrow(
      /groups is 3 in the run, but 2 in train; .*seed is 7 in the run, but 0 in train|seed.*groups/,
    )
  })

  it("is rejected when resumed or forked, without changes", async () => {
    const directory = place()
    await trained(directory, base, base)
    const before = await readFile(join(directory, "config.json"), "utf8")
    const other = { ...base, groups: 3, iterations: 4 }
    await expect(trained(directory, { ...base, iterations: 4 }, other, { resume: true })).rejects.toThrow("groups is 2")
    const fork = place()
    await expect(trained(fork, { ...base, iterations: 4 }, other, { fork: directory })).rejects.toThrow("groups is 2")
    expect(await readFile(join(directory, "config.json"), "utf8")).toBe(before)
    expect(await readdir(folder)).not.toContain(fork.slice(folder.length + 1))
  })

  it("is accepted if equal options are written differently, and if objects are recreated", async () => {
    const estimate = ({ length }: { length: number }) => ({ advantages: new Float64Array(length) })
    const own = () => ({
      ...base,
      estimator: { name: "own", estimate: (batch: { length: number }) => estimate(batch) },
    })
    await trained(place(), own(), own())
    await trained(place(), { name: "an attempt", ...base, loss: { name: "clipped-surrogate" } }, base)
  })
})

describe("options that a run's configuration does not state", () => {
  it.each(others.filter(([key]) => key !== "iterations"))("are kept and held to: %s", async (key, change, was, now) => {
    const directory = place()
    await trained(directory, { note: 1 }, base)
    const kept = JSON.parse(await readFile(join(directory, "config.json"), "utf8"))
    expect(kept.resolved).toMatchObject({ groups: 2, "rollout.maxCompletionTokens": 2, iterations: 2 })
    const more = { ...base, ...change, iterations: 4 }
    await expect(trained(directory, { note: 1 }, more, { resume: true })).rejects.toMatchObject({
      code: "BAD_CONFIG",
      message: expect.stringContaining(`${key} was ${was} and is now ${now}`),
    })
    expect(JSON.parse(await readFile(join(directory, "config.json"), "utf8"))).toEqual(kept)
  })

  it("is accepted for options that a resumed run may change, which are stored", async () => {
    const directory = place()
    await trained(directory, {}, base)
    await trained(directory, {}, { ...base, iterations: 3, checkpointEvery: 1 }, { resume: true })
    const { resolved } = JSON.parse(await readFile(join(directory, "config.json"), "utf8"))
    expect(resolved).toMatchObject({ iterations: 3, checkpointEvery: 1, groups: 2 })
    await trained(place(), {}, { ...base, groups: 4, iterations: 4 }, { fork: directory })
  })
})

describe("a cloning's run", () => {
  const cloning = { tasks: 4, epochs: 2, completionsPerUpdate: 4 }
  const cloned = async (directory: string, stated: object, given: typeof cloning, mode: RunOptions = {}) => {
    await using run = await Run.open(directory, stated, mode)
    const environment = openReadableDoors()
    await sft({ policy: new TablePolicy(), tokenizer, environment, run, ...given })
  }

  it("is checked equally in SFT", async () => {
    await expect(cloned(place(), cloning, { ...cloning, completionsPerUpdate: 5 })).rejects.toThrow(
      "completionsPerUpdate is 4 in the run, but 5 in sft",
    )
    const directory = place()
    await cloned(directory, {}, cloning)
    await expect(cloned(directory, {}, { ...cloning, completionsPerUpdate: 5 }, { resume: true })).rejects.toThrow(
      "completionsPerUpdate was 4 and is now 5",
    )
  })
})
