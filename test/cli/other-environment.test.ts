import { cp, mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { madeFor } from "../../src/model-files/made-for.ts"
import { built, gigpo, tiny } from "./gigpo.ts"

describe.skipIf(!built)("a model and the environment that it was made for (needs dist: npm run build:ts)", () => {
  let folder: string
  const run = async (...words: string[]) => await gigpo(words, { cwd: folder })
  const short = ["--set", "training.iterations=1", "--set", "training.evaluation.every=0"]

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-other-"))
    expect(await run("init", "sokoban", "sokoban", ...tiny)).toMatchObject({ code: 0 })
    expect(await run("init", "number-line", "line", ...tiny)).toMatchObject({ code: 0 })
    expect(await run("sft", "line/config.yaml", "--out", "cloned", "--set", "sft.epochs=1")).toMatchObject({
      code: 0,
    })
    expect(await run("train", "line/config.yaml", "--set", "run=run", ...short)).toMatchObject({ code: 0, stderr: "" })
    await cp(join(folder, "cloned"), join(folder, "unknown"), { recursive: true })
    await rm(join(folder, "unknown/gigpo.json"))
  })
  afterAll(async () => await rm(folder, { recursive: true, force: true }))

  const made = ["line/model", "cloned", "run/model", "run/checkpoints/iteration-1"]

  it("are recorded with the model, however it was created", async () => {
    for (const model of made) expect(await madeFor(join(folder, model))).toBe("number-line")
    expect(await madeFor(join(folder, "sokoban/model"))).toBe("sokoban")
    for (const model of ["unknown", "nowhere", "line"]) expect(await madeFor(join(folder, model))).toBeUndefined()
  })

  it.each(made)("%s causes a warning in another environment", async (model) => {
    const warning = `The model ${model} was made for number-line, not for sokoban`
    const evaluated = await run("evaluate", "sokoban/config.yaml", "--model", model, "--json")
    expect(evaluated).toMatchObject({ code: 0, stderr: expect.stringContaining(warning) })
    expect(() => JSON.parse(evaluated.stdout)).not.toThrow()
  })

  it.each([
    ["play", ["play", "sokoban/config.yaml", "--model", "cloned"]],
    [
      "play without a configuration",
      ["play", "sokoban", "--model", "cloned", "--set", "training.rollout.maxCompletionTokens=8"],
    ],
    ["anchors", ["anchors", "sokoban/config.yaml", "--model", "cloned", "--json"]],
    ["train", ["train", "sokoban/config.yaml", "--set", "model=cloned", "--set", "run=other", "--json", ...short]],
  ])("%s warns", async (_, words) => {
    const { code, stderr } = await run(...words)
    expect(code).toBe(0)
    expect(stderr).toContain("The model cloned was made for number-line, not for sokoban")
  })

  it("cause no warning if they fit, or if nothing is recorded", async () => {
    for (const [config, model] of [
      ["line/config.yaml", "run/model"],
      ["line/config.yaml", "run/checkpoints/iteration-1"],
      ["sokoban/config.yaml", "sokoban/model"],
      ["sokoban/config.yaml", "unknown"],
    ] as const)
      expect((await run("evaluate", config, "--model", model)).stderr).not.toContain("was made for")
  })
})
