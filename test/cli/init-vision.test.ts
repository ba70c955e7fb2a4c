import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { parse } from "yaml"
import { readModelConfig } from "../../src/model-files/model-config.ts"
import { built, gigpo, tiny } from "./gigpo.ts"

const small = ["vision.hiddenSize=16", "vision.layers=1", "vision.heads=2", "vision.pixels=6400"]

describe.skipIf(!built)("gigpo init --vision (needs dist: npm run build:ts)", () => {
  let folder: string
  const run = (...words: readonly string[]) => gigpo(words, { cwd: folder })
  const json = async (path: string) => JSON.parse(await readFile(join(folder, path), "utf8"))
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-vision-"))
    const set = small.flatMap((one) => ["--set", `initialModel.${one}`])
    expect(await run("init", "sokoban", "made", "--vision", ...tiny, ...set)).toMatchObject({ code: 0 })
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  it("writes a vision-language model with its image processor and tokenizer, in transformers' layout", async () => {
    const names = ["config.json", "model.safetensors", "preprocessor_config.json", "tokenizer.json"]
    expect(await readdir(join(folder, "made/model"))).toEqual(expect.arrayContaining(names))
    const { vision } = await readModelConfig(join(folder, "made/model"))
    expect(vision).toMatchObject({ kind: "qwen2.5-vl", hiddenSize: 16, layers: 1, heads: 2, patchSize: 8, merge: 2 })
    const { added_tokens } = await json("made/model/tokenizer.json")
    const config = await json("made/model/config.json")
    const idOf = (mark: string) => added_tokens.find(({ content }: { content: string }) => content === mark).id
    expect(config).toMatchObject({
      architectures: ["Qwen2_5_VLForConditionalGeneration"],
      image_token_id: idOf("<|image_pad|>"),
      vision_start_token_id: idOf("<|vision_start|>"),
      vision_end_token_id: idOf("<|vision_end|>"),
    })
    expect(await json("made/model/preprocessor_config.json")).toMatchObject({ patch_size: 8, max_pixels: 6400 })
  })

  it("trains that model on pictures, and its vision tower too, two iterations", async () => {
    expect(parse(await readFile(join(folder, "made/config.yaml"), "utf8"))).toMatchObject({
      trainVision: true,
      environment: { name: "sokoban", observation: "image" },
    })
    const weights = async (path: string) => {
      const { openSafetensors } = await import("../../src/model-files/safetensors.ts")
      const files = await openSafetensors(join(folder, path))
      try {
        const chunks = []
        for await (const chunk of files.read("visual.patch_embed.proj.weight")) chunks.push(Buffer.from(chunk))
        return Buffer.concat(chunks)
      } finally {
        await files.close()
      }
    }
    expect(await run("sft", "made/config.yaml", "--out", "cloned", "--set", "sft.tasks=4")).toMatchObject({ code: 0 })
    const sets = ["iterations=2", "groups=4", "groupSize=4", "evaluation.every=0"].map((one) => `training.${one}`)
    const model = ["--set", "model=cloned"]
    const done = await run("train", "made/config.yaml", ...model, ...sets.flatMap((one) => ["--set", one]))
    expect(done).toMatchObject({ code: 0 })
    expect(done.stdout).toMatch(/^iteration 2\/2 .*success/m)
    const [before, cloned, after] = await Promise.all(["made/model", "cloned", "made/run/model"].map(weights))
    expect(cloned!.equals(before!)).toBe(false)
    expect(after!.equals(cloned!)).toBe(false)
    expect(await readdir(join(folder, "made/run/model"))).toContain("preprocessor_config.json")
  })

  it.each([
    [["sokoban", "refused", "--vision", "--model", "made/model"], /--model names an existing one.*observation=image/],
    [["webshop", "refused", "--vision"], /no starter configuration for webshop with images/],
    [
      ["sokoban", "refused", "--vision", "--set", "environment.observation=text"],
      /prompts of sokoban contain no images/,
    ],
    [["sokoban", "refused", "--set", "environment.observation=image"], /contain images, which a language model cannot/],
    [["sokoban", "refused", "--vision", "--set", "initialModel.vision.heads=3"], /multiple of 4 × heads/],
    [
      ["sokoban", "refused", "--vision", "--set", "initialModel.vision.pixels=100"],
      /pixels is 100; one feature covers 256/,
    ],
  ])("init %j is rejected, and nothing is written", async (words, message) => {
    const { code, stderr, stdout } = await run("init", ...words)
    expect([code, stdout]).toEqual([2, ""])
    expect(stderr).toMatch(message)
    expect(stderr).not.toMatch(/^\s+at /m)
    expect(await readdir(folder)).not.toContain("refused")
  })

  it("takes a module whose prompts contain images", async () => {
    const module = `import { sokoban } from ${JSON.stringify(join(import.meta.dirname, "../../modules/entries/environments/sokoban.js"))}
    export default { ...sokoban({ observation: "both", rules: false, thinking: "off", size: [5, 5], searchDepth: 6 }), name: "mine" }`
    await writeFile(join(folder, "mine.mjs"), module)
    const set = small.flatMap((one) => ["--set", `initialModel.${one}`])
    expect(await run("init", "./mine.mjs", "own", "--vision", ...tiny, ...set)).toMatchObject({ code: 0 })
  })
})
