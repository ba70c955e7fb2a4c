import { mkdtemp, readdir, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { built, gigpo, tiny } from "./gigpo.ts"

describe.skipIf(!built)("training an adapter from the terminal", () => {
  let folder: string
  const run = (...words: string[]) => gigpo(words, { cwd: folder })
  const config = "small/config.yaml"
  const adapter = ["-s", "lora.rank=2", "-s", "training.iterations=2"]
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-adapter-"))
    expect(await run("init", "sokoban", "small", ...tiny)).toMatchObject({ code: 0 })
    expect(await run("train", config, ...adapter)).toMatchObject({ code: 0, stderr: "" })
  })
  afterAll(async () => await rm(folder, { recursive: true }))

  it("saves an adapter in each checkpoint and a merged model at the end, with equal evaluations", async () => {
    expect(await readdir(join(folder, "small/run/checkpoints/iteration-2"))).toContain("adapter_model.safetensors")
    const settings = ["--json", "-s", "training.evaluation.tasks=8"]
    const reports = []
    for (const folder of ["small/run/checkpoints/iteration-2", "small/run/model"]) {
      const { code, stdout } = await run("evaluate", "small/run/config.json", "-m", folder, ...settings)
      expect(code).toBe(0)
      const { model, ...report } = JSON.parse(stdout)
      expect(model).toBe(folder)
      reports.push(report)
    }
    expect(reports[1]).toEqual(reports[0])
    expect(await run("play", config, "-m", "small/run/checkpoints/iteration-2")).toMatchObject({ code: 0, stderr: "" })
  })

  it("is resumed with other memory settings, but not with settings that change results", async () => {
    const resume = (...words: string[]) => run("train", "small/run/config.json", "--resume", ...words)
    expect(JSON.parse(await readFile(join(folder, "small/run/config.json"), "utf8"))).toMatchObject({
      lora: { rank: 2 },
      precision: "float32",
    })
    for (const [change, message] of [
      ["lora.rank=3", /lora.rank was 2 and is now 3/],
      ["lora.alpha=3", /lora.alpha was not set and is now 3/],
      ["optimizerPrecision=bfloat16", /optimizerPrecision was "float32" and is now "bfloat16"/],
      ["precision=bfloat16", /precision was "float32" and is now "bfloat16"/],
    ] as const) {
      const { code, stderr } = await resume("-s", change)
      expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(message) })
    }
    const free = ["recompute=block", "microBatchTokens=300", "kvCacheBytes=1000000", "training.iterations=3"]
    expect(await resume(...free.flatMap((set) => ["-s", set]))).toMatchObject({ code: 0 })
  })
})
