import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { built, gigpo, tiny } from "./gigpo.ts"

describe.skipIf(!built)("lengths and sizes of a configuration (needs dist: npm run build:ts)", () => {
  let folder: string
  const run = async (...words: string[]) => await gigpo(words, { cwd: folder })
  const estimated = (config: string, ...more: string[]) => run("estimate", config, "--gpu", "h100", "--json", ...more)

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-lengths-"))
    expect(await run("init", "sokoban", "small", ...tiny)).toMatchObject({ code: 0 })
    // A folder with config.json alone.
    await mkdir(join(folder, "bare"))
    await cp(join(folder, "small/model/config.json"), join(folder, "bare/config.json"))
    await writeFile(join(folder, "minimal.yaml"), "model: small/model\nenvironment: sokoban\nrun: none\n")
  })
  afterAll(async () => await rm(folder, { recursive: true, force: true }))

  const positions = async () =>
    JSON.parse(await readFile(join(folder, "bare/config.json"), "utf8")).max_position_embeddings

  it.each([
    ["config", ["config", "minimal.yaml"]],
    ["train", ["train", "minimal.yaml"]],
    ["evaluate", ["evaluate", "minimal.yaml"]],
    ["play", ["play", "minimal.yaml"]],
    ["anchors", ["anchors", "minimal.yaml"]],
    ["estimate", ["estimate", "minimal.yaml"]],
  ])("%s rejects replies that leave no room for a prompt, with both numbers and the key", async (_, words) => {
    const all = [...words, "--set", "training.rollout.maxCompletionTokens=4096"]
    const { code, stdout, stderr } = await run(...all)
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" })
    expect(stderr).toContain(
      `training.rollout.maxCompletionTokens is 4096, but the model small/model has ${await positions()} positions`,
    )
    expect(stderr).toContain("Lower training.rollout.maxCompletionTokens")
    const set = await run(...words, "--set", "maxPositions=100", "--set", "training.rollout.maxCompletionTokens=100")
    expect(set).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/maxCompletionTokens is 100, but maxPositions is 100 /),
    })
  })

  it.each([
    [
      ["train", "small/config.yaml", "--set", "training.groups=1000000000"],
      /training\.groups=1000000000 × training\.groupSize=3/,
    ],
    [
      ["train", "small/config.yaml", "--set", "training.evaluation.tasks=1000000000"],
      /training\.evaluation\.tasks=1000000000/,
    ],
    [
      ["evaluate", "small/config.yaml", "--set", "training.evaluation.tasks=1000000000"],
      /training\.evaluation\.tasks=1000000000/,
    ],
    [["sft", "small/config.yaml", "--in-place", "--set", "sft.tasks=1000000000"], /sft\.tasks=1000000000/],
  ])("%j is rejected at once, with what it would take", async (words, message) => {
    const { code, stderr } = await run(...words)
    expect(code).toBe(2)
    expect(stderr).toMatch(message)
    expect(stderr).toMatch(/means [\d,]+ episodes.* at least .* GB; this machine has/)
  })

  it("estimate needs only config.json, and states how it counts tokens", async () => {
    const { code, stdout, stderr } = await estimated(
      "minimal.yaml",
      "--set",
      "model=bare",
      "--set",
      "training.rollout.maxCompletionTokens=8",
    )
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
    const { lengths } = JSON.parse(stdout)
    expect(lengths.source).toMatch(
      /^measured on .*; a token is assumed to have 4 characters, since the model folder has no tokenizer$/,
    )
    expect(lengths.promptTokens).toBeGreaterThan(20)
  })

  it("estimate assumes the lengths of an agent's episodes", async () => {
    const agent = ["--set", "agent.name=process", "--set", 'agent.command=["true"]', "--set", "model=bare"]
    const { code, stdout } = await estimated("minimal.yaml", ...agent, "--steps", "3")
    expect(code).toBe(0)
    const { lengths } = JSON.parse(stdout)
    expect(lengths).toMatchObject({ steps: 3, source: expect.stringMatching(/^assumed, since an agent plays/) })
    expect(lengths.promptTokens + lengths.completionTokens).toBeLessThanOrEqual(await positions())
  })

  it("estimate lists its requirements without a model", async () => {
    await writeFile(join(folder, "none.yaml"), "environment: sokoban\n")
    const none = await estimated("none.yaml")
    expect(none).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/model is missing.*only the model's config\.json.*--set model=/),
    })
    const absent = await estimated("minimal.yaml", "--set", "model=small/none")
    expect(absent).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('"hf download small/none config.json --local-dir none" and set model to none'),
    })
  })

  it("estimate rejects lengths that do not fit together", async () => {
    const refused = await estimated("small/config.yaml", "--prompt-tokens", "5000", "--completion-tokens", "20")
    expect(refused).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`add up to 5020, more than the ${await positions()} positions`),
    })
  })
})
