import { mkdir, mkdtemp, readdir, rm, truncate, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { newestModel } from "../../src/model-files/run-models.ts"
import { formatRunConfig } from "../../src/runs/config.ts"
import { Run } from "../../src/runs/run.ts"
import { checkRun } from "../../src/view/runs.ts"
import { FakePolicy } from "../training/fake-policy.ts"
import { config, placeForRun, putRun, refused } from "./run-place.ts"

let folder: string
let directory: string
beforeEach(async () => {
  ;({ folder, directory } = await placeForRun())
})
afterEach(async () => await rm(folder, { recursive: true }))

describe("a run's folder with a broken file", () => {
  it.each<[string, (path: string) => Promise<void>, RegExp]>([
    ["config.json", (path) => rm(path), /its config\.json is missing/],
    ["config.json", (path) => truncate(path, 20), /its config\.json is damaged/],
    ["config.json", (path) => truncate(path, 0), /its config\.json is damaged/],
    ["config.json", (path) => writeFile(path, "{}"), /its config\.json is damaged or was not written by gigpo/],
    ["metrics.jsonl", (path) => rm(path), /its metrics\.jsonl is missing/],
  ])("says of %s what is the matter (%#)", async (name, damage, message) => {
    await putRun(directory, 3, [3])
    await damage(join(directory, name))
    for (const options of [{}, { resume: true }, { overwrite: true }])
      await refused(directory, options, "RUN_CORRUPT", message)
    await expect(checkRun(directory)).rejects.toMatchObject({
      code: "RUN_CORRUPT",
      message: expect.stringMatching(message),
    })
    const fork = Run.open(join(folder, "fork"), config, { fork: directory })
    await expect(fork).rejects.toMatchObject({ code: "RUN_CORRUPT", message: expect.stringMatching(message) })
    const of = join(directory, "checkpoints", "iteration-3")
    const run = await Run.open(join(folder, "fork"), config, { fork: of })
    expect(run.iteration).toBe(3)
    await run.close()
  })
})

describe("a checkpoint that is damaged", () => {
  it.each<[string, (path: string) => Promise<void>]>([
    ["no manifest", (path) => rm(join(path, "manifest.json"))],
    ["an empty manifest", (path) => truncate(join(path, "manifest.json"), 0)],
    ["half a manifest", (path) => truncate(join(path, "manifest.json"), 40)],
    ["a manifest of nothing", (path) => writeFile(join(path, "manifest.json"), "{}")],
    ["weights cut off", (path) => truncate(join(path, "weights.bin"), 3)],
    ["weights missing", (path) => rm(join(path, "weights.bin"))],
  ])("is named and set aside on resume, so that it can be written again: %s", async (_, damage) => {
    await putRun(directory, 4, [2, 4])
    const checkpoints = join(directory, "checkpoints")
    await damage(join(checkpoints, "iteration-4"))
    const warnings: string[] = []
    const run = await Run.open(directory, config, { resume: true, onWarning: (message) => warnings.push(message) })
    expect(run.iteration).toBe(2)
    expect(warnings).toEqual([expect.stringMatching(/iteration-4 is damaged: .*older checkpoint/)])
    await run.begin()
    expect((await readdir(checkpoints)).sort()).toContain("iteration-2")
    expect(await readdir(checkpoints)).not.toContain("iteration-4")
    for (const iteration of [3, 4]) await run.log({ iteration, metrics: {} })
    await run.saveCheckpoint(4, new FakePolicy(), 2)
    await run.close()
    const again = await Run.open(directory, config, { resume: true })
    expect(again.iteration).toBe(4)
    await again.close()
  })
})

describe("a run without a checkpoint that is named as a model", () => {
  it.each([true, false])("is reported to have none yet (folder of checkpoints: %s)", async (hasFolder) => {
    const run = await mkdtemp(join(tmpdir(), "gigpo-empty-"))
    await writeFile(join(run, "config.json"), formatRunConfig({ iterations: 2 }))
    await writeFile(join(run, "metrics.jsonl"), "")
    if (hasFolder) await mkdir(join(run, "checkpoints"))
    await expect(newestModel(run)).rejects.toMatchObject({
      code: "BAD_MODEL",
      message: expect.stringMatching(/is a run\. It has no model and no checkpoint/),
    })
    await rm(run, { recursive: true })
  })
})
