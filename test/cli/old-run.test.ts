import { cp, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { built, gigpo, tiny } from "./gigpo.ts"

type Group = Record<string, Record<string, unknown>>

/** Keys that gigpo 0.1 did not write, and what it wrote in a manifest instead of a handle. */
async function makeOld(run: string): Promise<void> {
  const path = join(run, "config.json")
  const config = JSON.parse((await readFile(path, "utf8")).replaceAll("1e999", "1e308"))
  for (const key of ["device", "recompute", "moments"]) delete config[key]
  const training: Group & { unit?: unknown } = config.training
  delete training.unit
  for (const [group, keys] of Object.entries({
    loss: ["name", "skipZeroAdvantage"],
    optimizer: ["epsilon"],
    rollout: ["resamples", "refills"],
  }))
    for (const key of keys) delete training[group]![key]
  // GRPO's configurations had the step level's options, too.
  Object.assign(training.estimator!, { gamma: 0.95, omega: 1 })
  await writeFile(path, JSON.stringify({ ...config, gigpo: "0.1.0" }))
  for (const step of await readdir(join(run, "checkpoints"))) {
    const manifest = join(run, "checkpoints", step, "manifest.json")
    const { handle, files, iteration } = JSON.parse(await readFile(manifest, "utf8"))
    const old = { version: 1, gigpo: "0.1.0", iteration, optimizerSteps: handle.optimizerSteps, finite: true, files }
    await writeFile(manifest, JSON.stringify(old))
  }
}

describe.skipIf(!built)("the run folder of gigpo 0.1 (needs dist: npm run build:ts)", () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-old-"))
  })
  afterAll(async () => await rm(folder, { recursive: true, force: true }))
  const run = async (...words: string[]) => await gigpo(words, { cwd: folder })

  it("is resumed, and ends like a current run", async () => {
    expect(await run("init", "sokoban", "demo", ...tiny)).toMatchObject({ code: 0 })
    const grpo = ["--set", "training.estimator.name=grpo", "--set", "training.iterations=3"]
    expect(await run("train", "demo/config.yaml", "--json", ...grpo)).toMatchObject({ code: 0 })
    await cp(join(folder, "demo/run"), join(folder, "old"), { recursive: true })
    await makeOld(join(folder, "old"))
    const more = ["--json", "--resume", "--set", "training.iterations=4"]
    expect(await run("train", "demo/run/config.json", ...more)).toMatchObject({ code: 0 })
    const old = await run("train", "old/config.json", ...more, "--set", "run=old")
    expect(old).toMatchObject({ code: 0, stderr: expect.stringMatching(/^Resuming after iteration 3 of 4/) })
    const weights = async (of: string) => await readFile(join(folder, of, "model/model.safetensors"), "base64")
    expect(await weights("old")).toBe(await weights("demo/run"))
  })
})
