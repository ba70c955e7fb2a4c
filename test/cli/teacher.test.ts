import { cp, mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { built, gigpo, tiny } from "./gigpo.ts"

describe.skipIf(!built)("distilling a teacher from the terminal", () => {
  let folder: string
  const run = (...words: string[]) => gigpo(words, { cwd: folder })
  const distil = ["-s", "training.loss.name=distillation", "-s", "training.iterations=2", "-s", "training.epochs=1"]
  const train = (...words: string[]) => run("train", "small/config.yaml", ...distil, ...words)
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-teacher-"))
    for (const [name, ...sets] of [["small"], ["teacher", "seed=9"], ["foreign", "initialModel.vocabularySize=270"]])
      expect(await run("init", "sokoban", name!, ...tiny, ...sets.flatMap((set) => ["-s", set]))).toMatchObject({
        code: 0,
      })
  })
  afterAll(async () => await rm(folder, { recursive: true }))

  it("scores each completion with the teacher, and is resumed only with the same one", async () => {
    expect(await train("-s", "teacher=teacher/model")).toMatchObject({ code: 0, stderr: "" })
    const lines = (await readFile(join(folder, "small/run/metrics.jsonl"), "utf8")).trim().split("\n")
    for (const line of lines.slice(-2)) expect(JSON.parse(line).metrics["distillation/divergence"]).not.toBe(0)
    const resume = () => run("train", "small/run/config.json", "--resume", "-s", "training.iterations=3")
    await cp(join(folder, "teacher"), join(folder, "kept"), { recursive: true })
    await rm(join(folder, "teacher/model/gigpo.json")) // or opening it would be rejected
    await cp(join(folder, "small/model/model.safetensors"), join(folder, "teacher/model/model.safetensors"))
    expect(await resume()).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/The teacher does not have the weights .* the run was distilled from them/s),
    })
    await cp(join(folder, "kept"), join(folder, "teacher"), { recursive: true })
    expect(await resume()).toMatchObject({ code: 0, stderr: "" })
  })

  it("changes nothing if the teacher is the model itself", async () => {
    expect(await train("-s", "run=same", "-s", "teacher=small/model")).toMatchObject({ code: 0 })
    const lines = (await readFile(join(folder, "same/metrics.jsonl"), "utf8")).trim().split("\n")
    const found = lines.flatMap((line) => JSON.parse(line).metrics["distillation/divergence"] ?? [])
    expect(found).toHaveLength(2)
    for (const divergence of found) expect(Math.abs(divergence)).toBeLessThan(1e-5)
  })

  it.each(["forward", "jensen-shannon"])("asks for the teacher's most likely tokens (%s)", async (divergence) => {
    const words = [
      "-s",
      `run=${divergence}`,
      "-s",
      "teacher=teacher/model",
      "-s",
      `training.loss.divergence=${divergence}`,
    ]
    expect(await train(...words)).toMatchObject({ code: 0, stderr: "" })
    const lines = (await readFile(join(folder, divergence, "metrics.jsonl"), "utf8")).trim().split("\n")
    for (const line of lines.slice(-2)) expect(JSON.parse(line).metrics["distillation/divergence"]).toBeGreaterThan(0)
  })

  it("includes the teacher's memory and time in the estimate", async () => {
    const { code, stdout } = await run("estimate", "small/config.yaml", ...distil, "-s", "teacher=teacher/model")
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringMatching(/next to a teacher: weights .* {4}teacher /s),
    })
  })

  it.each([
    ["without a teacher", [], /needs a teacher: set teacher to its model folder/],
    ["with one of another tokenizer", ["-s", "teacher=foreign/model"], /use a model with the same tokenizer/],
    ["with one that is not there", ["-s", "teacher=nobody"], /nobody/],
  ])("is rejected %s", async (_, words, message) => {
    const { code, stderr } = await train("-s", "run=other", ...words)
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(message) })
  })
})
