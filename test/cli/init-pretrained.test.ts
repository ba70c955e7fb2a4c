import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { parse } from "yaml"
import { built, gigpo, tiny } from "./gigpo.ts"

// A small model in place of a pretrained one: what counts is that it was not made for the configuration.
describe.skipIf(!built)("gigpo init --model (needs dist: npm run build:ts)", () => {
  let folder: string
  const run = (...words: readonly string[]) => gigpo(words, { cwd: folder })
  const configOf = async (directory: string) => parse(await readFile(join(folder, directory, "config.yaml"), "utf8"))
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-pretrained-"))
    expect(await run("init", "sokoban", "made", ...tiny)).toMatchObject({ code: 0 })
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  it("writes a configuration that trains an adapter of the model, constrained to the format of the environment", async () => {
    const done = await run("init", "number-line", "line", "--model", "made/model", "--set", "training.groups=2")
    expect(done).toMatchObject({ code: 0 })
    expect(done.stdout).toContain("Wrote line/config.yaml for the model made/model. Next:")
    expect((await readdir(join(folder, "line"))).sort()).toEqual(["config.schema.json", "config.yaml"])
    const config = await configOf("line")
    expect(config).toMatchObject({
      model: "made/model",
      run: "line/run",
      lora: { rank: 16 },
      environment: { name: "number-line", maxPosition: 20, thinking: "off" },
      training: { groups: 2, groupSize: 8, rollout: { constrained: true } },
    })
    expect(config).not.toHaveProperty("initialModel")
    expect(config.environment).not.toHaveProperty("rules")
    expect(config.training.rollout.maxCompletionTokens).toBeGreaterThanOrEqual(16)

    const sets = ["iterations=1", "groupSize=2", "evaluation.every=0", "rollout.maxCompletionTokens=40"].flatMap(
      (one) => ["--set", `training.${one}`],
    )
    const trained = await run("train", "line/config.yaml", ...sets)
    expect(trained).toMatchObject({ code: 0 })
    expect(trained.stdout).toMatch(/valid 1 /)
  })

  it("leaves to the command line what it sets, and to an agent its own format", async () => {
    const set = ["--set", "training.rollout.maxCompletionTokens=40", "--set", "training.rollout.constrained=false"]
    expect(await run("init", "sokoban", "set", "--model", "made/model", ...set)).toMatchObject({ code: 0 })
    expect((await configOf("set")).training.rollout).toEqual({ maxCompletionTokens: 40, constrained: false })
    expect(await run("init", "gateway", "agent", "--model", "made/model")).toMatchObject({ code: 0 })
    const { rollout } = (await configOf("agent")).training
    expect(rollout).toMatchObject({ maxCompletionTokens: 256 })
    expect(rollout).not.toHaveProperty("constrained")
  })

  it("needs no expert", async () => {
    const module = `export default {
      name: "mine",
      tasks: () => [1],
      start: async () => ({ first: { text: "go", anchor: "go" }, step: async () => ({ observation: { text: "", anchor: "" }, reward: 1, terminated: true, truncated: false }) }),
      prompt: () => [{ role: "user", content: "go" }],
      parse: (action) => ({ action, valid: true }),
    }`
    await writeFile(join(folder, "mine.mjs"), module)
    expect(await run("init", "./mine.mjs", "mine")).toMatchObject({ code: 2, stderr: expect.stringMatching(/--model/) })
    expect(await run("init", "./mine.mjs", "mine", "--model", "made/model")).toMatchObject({ code: 0 })
    const config = await configOf("mine")
    expect(config).not.toHaveProperty("sft")
    expect(config.training.rollout.maxCompletionTokens).toBe(64)
  })

  it.each([
    [["--model", "none/such/model"], /none\/such\/model/],
    [["--model", "made/model", "--set", "model=made"], /--model, not with --set/],
    [["--set", "model=made"], /use --model/],
    [["--model", "made"], /made/],
  ])("with %j is rejected, and nothing is written", async (words, message) => {
    const { code, stderr, stdout } = await run("init", "sokoban", "refused", ...words)
    expect([code, stdout]).toEqual([2, ""])
    expect(stderr).toMatch(message)
    expect(stderr).not.toMatch(/^\s+at /m)
    expect(await readdir(folder)).not.toContain("refused")
  })
})
