import { lstat, mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { Run } from "../../src/runs/run.ts"
import { FakePolicy } from "../training/fake-policy.ts"
import { config, placeForRun, putRun, refused, snapshot } from "./run-place.ts"

let folder: string
let directory: string
beforeEach(async () => {
  ;({ folder, directory } = await placeForRun())
})
afterEach(async () => await rm(folder, { recursive: true }))

describe("a new run", () => {
  it("has a configuration, an empty log and a lock, which is removed when it is closed", async () => {
    const run = await Run.open(directory, config)
    expect(await readdir(folder)).toEqual([])
    await run.begin()
    expect((await readdir(directory)).sort()).toEqual(["checkpoints", "config.json", "metrics.jsonl", "run.lock"])
    expect(run).toMatchObject({ directory, iteration: 0, checkpoint: undefined })
    const { gigpo, ...kept } = JSON.parse(await readFile(join(directory, "config.json"), "utf8"))
    expect(gigpo).toMatch(/^\d+\.\d+\.\d+/)
    expect(kept).toEqual(config)
    await run.close()
    await run.close()
    expect((await readdir(directory)).sort()).toEqual(["checkpoints", "config.json", "metrics.jsonl"])
    expect(await readdir(join(folder, "runs"))).toEqual(["one"])
  })

  it("may use an empty folder", async () => {
    await mkdir(directory, { recursive: true })
    const run = await Run.open(directory, config)
    await run.begin()
    await run.close()
    expect(await readdir(directory)).toContain("config.json")
  })

  it("follows a link, begun, resumed and replaced", async () => {
    const target = join(folder, "disk", "one")
    await mkdir(target, { recursive: true })
    await mkdir(join(folder, "runs"))
    await symlink(target, directory)
    await putRun(directory, 4, [2, 4])
    expect((await readdir(target)).sort()).toEqual(["checkpoints", "config.json", "metrics.jsonl"])
    const resumed = await Run.open(directory, config, { resume: true })
    expect(resumed.iteration).toBe(4)
    await resumed.log({ iteration: 5, metrics: {} })
    await resumed.close()
    const replaced = await Run.open(directory, config, { overwrite: true })
    await replaced.saveCheckpoint(1, new FakePolicy(), 2)
    await replaced.close()
    expect((await lstat(directory)).isSymbolicLink()).toBe(true)
    expect(await readdir(join(target, "checkpoints"))).toEqual(["iteration-1"])
  })

  it("is rejected if a run exists, with both alternatives, without changes", async () => {
    await putRun(directory, 2, [2])
    await refused(directory, {}, "RUN_EXISTS", /--resume.*--overwrite/)
  })

  it("is rejected in a folder with other files, even with overwrite", async () => {
    await mkdir(directory, { recursive: true })
    await writeFile(join(directory, "config.json"), '{"model_type":"qwen2"}')
    await writeFile(join(directory, "metrics.jsonl"), "")
    for (const options of [{}, { overwrite: true }, { resume: true }])
      await refused(directory, options, "RUN_EXISTS", /exists but is not a run folder/)
    await rm(directory, { recursive: true })
    await writeFile(directory, "a file")
    await refused(directory, { overwrite: true }, "RUN_EXISTS", /is not a run folder/)
  })

  it("has nothing to restore", async () => {
    const run = await Run.open(directory, config)
    const policy = new FakePolicy()
    await run.restore(policy)
    expect([policy.weights, policy.steps]).toEqual([new FakePolicy().weights, 0])
    await run.close()
  })

  it("writes the final model whole, over an earlier one", async () => {
    const run = await Run.open(directory, config)
    const policy = new FakePolicy()
    for (const value of [1, 2]) {
      policy.weights = Float32Array.of(value)
      expect(await run.saveModel(policy)).toBe(join(directory, "model"))
    }
    expect(new Float32Array((await readFile(join(directory, "model", "weights.bin"))).slice().buffer)).toEqual(
      Float32Array.of(2),
    )
    expect((await readdir(directory)).sort()).toEqual([
      "checkpoints",
      "config.json",
      "metrics.jsonl",
      "model",
      "run.lock",
    ])
    await run.close()
  })

  it("accepts nothing after it is closed", async () => {
    const run = await Run.open(directory, config)
    await run.close()
    await expect(run.log({ iteration: 1, metrics: {} })).rejects.toMatchObject({ code: "DISPOSED" })
    await expect(run.saveCheckpoint(1, new FakePolicy(), 2)).rejects.toMatchObject({ code: "DISPOSED" })
  })
})

describe("a run that is forked", () => {
  it("starts with state and log of another run, which is unchanged", async () => {
    await putRun(directory, 7, [2, 4, 6])
    const before = await snapshot(directory)
    const branch = join(folder, "runs", "branch")
    for (const [fork, iteration] of [
      [directory, 6],
      [join(directory, "checkpoints", "iteration-4"), 4],
    ] as const) {
      const run = await Run.open(branch, { ...config, seed: 9 }, { fork, overwrite: iteration === 4 })
      expect({ iteration: run.iteration, saved: run.saved }).toEqual({ iteration, saved: false })
      await run.begin()
      const policy = new FakePolicy()
      await run.restore(policy)
      expect(policy.weights).toEqual(Float32Array.of(iteration, iteration, iteration))
      await run.log({ iteration: iteration + 1, metrics: {} })
      await run.saveCheckpoint(iteration + 1, policy, 2)
      expect(run.saved).toBe(true)
      await run.close()
      const lines = (await readFile(join(branch, "metrics.jsonl"), "utf8")).trim().split("\n")
      expect(lines).toHaveLength(iteration + 1)
    }
    expect(await snapshot(directory)).toEqual(before)
  })

  it("starts again with that state if it was stopped before its first checkpoint", async () => {
    await putRun(directory, 4, [2, 4])
    const branch = join(folder, "branch")
    const first = await Run.open(branch, config, { fork: join(directory, "checkpoints", "iteration-2") })
    await first.log({ iteration: 3, metrics: {} })
    await first.close()
    const again = await Run.open(branch, config, { resume: true })
    expect(again).toMatchObject({ iteration: 2, saved: false })
    const policy = new FakePolicy()
    await again.restore(policy)
    expect(policy.steps).toBe(4)
    await again.begin()
    const lines = (await readFile(join(branch, "metrics.jsonl"), "utf8")).trim().split("\n")
    expect(lines.map((line) => JSON.parse(line).iteration)).toEqual([1, 2])
    await again.close()
    await rm(join(directory, "checkpoints", "iteration-2"), { recursive: true })
    await expect(Run.open(branch, config, { resume: true })).rejects.toMatchObject({ code: "RUN_CORRUPT" })
  })

  it("is continued only as a fork of the same run", async () => {
    await putRun(directory, 4, [2, 4])
    const [branch, other, plain] = ["branch", "other", "plain"].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ]
    await putRun(other, 4, [4])
    await putRun(plain, 2, [2])
    const checkpoint = join(directory, "checkpoints", "iteration-4")
    const first = await Run.open(branch, config, { fork: directory, resume: "auto" })
    await first.log({ iteration: 5, metrics: {} })
    await first.saveCheckpoint(5, new FakePolicy(), 1)
    await first.close()
    for (const fork of [directory, checkpoint]) {
      const again = await Run.open(branch, config, { fork, resume: "auto" })
      expect(again).toMatchObject({ iteration: 5, resumed: true, saved: true })
      await again.close()
    }
    const before = await snapshot(folder)
    for (const fork of [other, join(directory, "checkpoints", "iteration-2"), join(folder, "nothing")])
      await expect(Run.open(branch, config, { fork, resume: "auto" })).rejects.toMatchObject({
        code: "RUN_EXISTS",
        message: expect.stringMatching(/is a fork of .*iteration-4, but --fork names/),
      })
    await expect(Run.open(plain, config, { fork: other, resume: "auto" })).rejects.toMatchObject({
      code: "RUN_EXISTS",
      message: expect.stringMatching(/is not a fork, but --fork names/),
    })
    expect(await snapshot(folder)).toEqual(before)
  })

  it("is rejected without a source, into itself, and together with resume", async () => {
    await putRun(directory, 2, [])
    const branch = join(folder, "runs", "branch")
    await expect(Run.open(branch, config, { fork: directory })).rejects.toMatchObject({ code: "RUN_MISSING" })
    await expect(Run.open(branch, config, { fork: folder })).rejects.toMatchObject({ code: "RUN_MISSING" })
    await refused(
      directory,
      { fork: join(directory, "checkpoints", "iteration-2"), overwrite: true },
      "BAD_ARGUMENT",
      /another folder/,
    )
    await refused(directory, { fork: branch, resume: true }, "BAD_ARGUMENT", /a fork starts a new run/)
    const link = join(folder, "link")
    await symlink(directory, link)
    await refused(directory, { fork: join(link, "checkpoints"), overwrite: true }, "BAD_ARGUMENT", /another folder/)
  })
})
