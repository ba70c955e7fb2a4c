import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Tokenizer } from "../../src/tokenizer/tokenizer.ts"
import { episode, step } from "../training/episodes.ts"
import { group, record } from "../view/record/groups.ts"
import { built, gigpo, tiny } from "./gigpo.ts"

const lines = (values: readonly object[]) => values.map((value) => JSON.stringify(value)).join("\n")
const talks = Array.from({ length: 12 }, (_, at) => ({
  messages: [
    { role: "user", content: `${at} and 1` },
    { role: "assistant", content: `${at + 1}` },
  ],
}))
const pairs = talks.map((_, at) => ({ prompt: `${at} and 1`, chosen: `${at + 1}`, rejected: `${at}` }))

describe.skipIf(!built)("gigpo sft --data (needs dist: npm run build:ts)", () => {
  let folder: string
  const run = (...words: string[]) => gigpo(words, { cwd: folder })
  const sft = (data: string, out: string, ...words: string[]) =>
    run("sft", "small/config.yaml", "--data", data, "--out", out, "-s", "sft.completionsPerUpdate=4", ...words)
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-clone-data-"))
    expect(await run("init", "sokoban", "small", ...tiny)).toMatchObject({ code: 0 })
    await writeFile(join(folder, "talks.jsonl"), lines(talks))
    await writeFile(join(folder, "pairs.jsonl"), lines(pairs))
    await writeFile(join(folder, "broken.jsonl"), `${lines(talks)}\n{"messages": 1}`)
  })
  afterAll(async () => await rm(folder, { recursive: true, force: true }))

  it("learns from transcripts and writes only the model", async () => {
    expect(await sft("talks.jsonl", "told")).toMatchObject({
      code: 0,
      stderr: "",
      stdout: expect.stringMatching(/^epoch 2\/2 {2}loss .* 12 completions/m),
    })
    const [before, after] = await Promise.all(
      ["small/model", "told"].map((model) => readFile(join(folder, model, "model.safetensors"))),
    )
    expect(before!.equals(after!)).toBe(false)
    expect(await readdir(folder)).not.toContain("told.sft")
  })

  it("learns from pairs by dpo", async () => {
    const dpo = await sft("pairs.jsonl", "preferred", "-s", "sft.loss.name=dpo")
    expect(dpo).toMatchObject({
      code: 0,
      stderr: "",
      stdout: expect.stringMatching(/^epoch 2\/2 {2}loss .* preferred .* % {2}24 completions/m),
    })
  })

  it("learns from recorded episodes of a run", async () => {
    const tokenizer = await Tokenizer.open(join(folder, "small/model"))
    const spoken = (asked: string, completion: string) => {
      const tokens = tokenizer.encode(`${completion}<|im_end|>`)
      const prompt = tokenizer.encode(`<|im_start|>user\n${asked}<|im_end|>\n<|im_start|>assistant\n`)
      return step(asked, 0, 1, { prompt, completion: tokens, logProbs: new Float32Array(tokens.length) })
    }
    const episodes = [
      episode([spoken("a", "up"), spoken("b", "left")], { metrics: { success: 1 } }),
      episode([spoken("a", "down")], { metrics: { success: 0 } }),
    ]
    const credit = { advantages: new Float64Array(3) }
    await record(join(folder, "runs/one"), [[1, { groups: [group(0, episodes)], credit }]], { tokenizer })
    await tokenizer.dispose()
    const said = (count: number) => ({ code: 0, stderr: "", stdout: expect.stringContaining(`  ${count} completions`) })
    expect(await sft("runs/one/episodes", "again")).toMatchObject(said(2))
    expect(await sft("runs/one", "all", "-s", "sft.successfulOnly=false")).toMatchObject(said(3))
    const refused = await sft("runs", "never")
    expect(refused).toMatchObject({ stderr: expect.stringMatching(/no recorded episodes.*\[BAD_DATA\]/) })
    expect(refused.code).not.toBe(0)
  })

  it("rejects an invalid line with its number before it writes anything", async () => {
    const refused = await sft("broken.jsonl", "never")
    expect(refused.stderr).toMatch(/broken\.jsonl, line 13: messages must be a list of messages.*\[BAD_DATA\]/)
    expect(refused.code).not.toBe(0)
    const missing = await sft("nothing.jsonl", "never")
    expect(missing.stderr).toMatch(/nothing\.jsonl/)
    expect(missing.code).not.toBe(0)
    expect((await readdir(folder)).filter((name) => name.startsWith("never"))).toEqual([])
  })
})
