import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { built, gigpo, tiny } from "./gigpo.ts"

describe.skipIf(!built)("the default learning rate of a configuration (needs dist: npm run build:ts)", () => {
  let folder: string
  const run = async (...words: string[]) => {
    const outcome = await gigpo(words, { cwd: folder })
    expect(outcome.code, outcome.stderr).toBe(0)
    return outcome.stdout
  }
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-rate-"))
    await run("init", "sokoban", "small", ...tiny)
    const path = join(folder, "small/config.yaml")
    const config = await readFile(path, "utf8")
    await writeFile(path, config.replaceAll(/^ *learningRate:.*\n/gm, ""))
  })
  afterAll(async () => await rm(folder, { recursive: true, force: true }))

  it("is printed when SFT begins", async () => {
    expect(await run("sft", "small/config.yaml", "--out", "cloned")).toMatch(
      /^Learning rate 0\.0003, chosen for [\d,]+ weights; sft\.optimizer\.learningRate overrides it\.\n/,
    )
  })

  it("is printed when training begins, and stored in the run, so that a resume does not depend on the rule", async () => {
    expect(await run("train", "small/config.yaml")).toMatch(
      /^Learning rate 0\.0001, chosen for [\d,]+ weights; training\.optimizer\.learningRate overrides it\.\n/,
    )
    const path = join(folder, "small/run/config.json")
    const text = await readFile(path, "utf8")
    const kept = JSON.parse(text)
    expect(kept.training.optimizer.learningRate).toBe(1e-4)
    expect(kept.training.critic.optimizer.learningRate).toBe(3e-4)
    expect(kept).not.toHaveProperty("settled") // it stands once
    // As if another version had had another rule.
    await writeFile(path, text.replaceAll('"learningRate": 0.0001', '"learningRate": 0.0002'))
    const stdout = await run("train", "small/run/config.json", "--resume", "--json", "--set", "training.iterations=7")
    expect(JSON.parse(stdout.trimEnd().split("\n").at(-1)!).metrics["optimizer/learning-rate"]).toBe(2e-4)
  })
})
