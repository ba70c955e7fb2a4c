import { appendFile, copyFile, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { built, gigpo, tiny } from "./gigpo.ts"

describe.skipIf(!built)("a custom environment", () => {
  let folder: string
  const run = (...words: string[]) => gigpo(words, { cwd: folder })
  const succeed = async (...words: string[]) => {
    const outcome = await run(...words)
    expect(outcome).toMatchObject({ code: 0, stderr: "" })
    return outcome.stdout
  }
  const refuse = async (message: RegExp, ...words: string[]) => {
    const { code, stdout, stderr } = await run(...words)
    expect({ code, stdout, stderr }).toEqual({ code: 2, stdout: "", stderr: expect.stringMatching(message) })
  }
  const config = "demo/config.yaml"

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-own-"))
    await copyFile(join(import.meta.dirname, "guess.mjs"), join(folder, "guess.mjs"))
    // As installed by `npm install` in another project.
    await mkdir(join(folder, "node_modules"))
    await symlink(join(import.meta.dirname, "../.."), join(folder, "node_modules/gigpo"))
  })
  afterAll(async () => await rm(folder, { recursive: true, force: true }))

  it("is played by its path, with its options", async () => {
    const played = await succeed("play", "./guess.mjs", "--expert", "--set", "environment.most=3")
    expect(played).toMatch(/A number from 1 to 3\. Your guess\?(.*\n)+action {6}2\n(.*\n)*The episode terminated/)
    await refuse(/Choose a player for \.\/guess\.mjs/, "play", "./guess.mjs")
    await refuse(/^gigpo: \.\/gone\.mjs: Could not read the module .*gone\.mjs: it/, "play", "./gone.mjs", "--expert")
    await refuse(
      /--set: environment\.mots is not an option; did you mean environment\.most\?/,
      ...["play", "guess.mjs", "--expert", "--set", "environment.mots=3"],
    )
  })

  it("gets a small model and a configuration", async () => {
    const made = await succeed("init", "./guess.mjs", "demo", ...tiny.slice(0, -14), "--set", "environment.most=5")
    expect(made).toMatch(/^Wrote demo\/config\.yaml and a model with .* weights in demo\/model\. Next:\n/)
    const shown = await succeed("config", config, "--modules")
    expect(shown).toMatch(/^ {2}# The largest number that is thought of\. Default 9\.\n {2}most: 5$/m)
    // A digit and the end, twice.
    expect(shown).toMatch(/^ {4}maxCompletionTokens: 4$/m)
    expect(await readFile(join(folder, config), "utf8")).toMatch(/^environment:\n {2}name: \.\.\/guess\.mjs\n/m)
  })

  const short = tiny.slice(tiny.indexOf("sft.tasks=10") - 1)

  it("supports SFT, training, resumption and evaluation", async () => {
    expect(await succeed("estimate", config, ...short)).toMatch(
      /6 episodes of .* steps, .* \(measured on 16 episodes of/,
    )
    await succeed("sft", config, "--out", "cloned", ...short)
    const report = await succeed("anchors", config, "--model", "cloned", ...short)
    expect(report).toMatch(
      /^ {2}compared .* in the same anchor state\n.* within one episode\n {2}length {6}[\d.]+ times the expert's steps\n(.*\n)*? {2}truncated /m,
    )
    const trained = await succeed("train", config, "--set", "model=cloned", ...short)
    expect(trained).toMatch(/^iteration 6\/6 {2}success /m)
    expect(await readdir(join(folder, "demo/run"))).toContain("model")
    const log = await readFile(join(folder, "demo/run/metrics.jsonl"), "utf8")
    const [, ...all] = log
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).metrics)
    // A guess that rules nothing out wastes a step; where nothing was guessed there is nothing to waste.
    for (const metrics of all) expect("episode/loop-steps" in metrics).toBe(metrics["episode/success"] > 0)
    expect(Math.max(...all.map((metrics) => metrics["episode/loop-steps"] ?? 0))).toBeLessThan(1)
    const more = await run(
      "train",
      config,
      "--resume",
      "--set",
      "model=cloned",
      ...short,
      "-s",
      "training.iterations=7",
    )
    expect(more).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Resuming after iteration 6 of 7\.\n/) })
    const kept = "demo/run/config.json"
    const evaluated = await succeed("evaluate", kept, "--model", "demo/run/model")
    expect(evaluated).toMatch(/^demo\/run\/model on guess to 5: 4 held-out tasks/)
    expect(await succeed("play", kept, "--model", "demo/run/model")).toMatch(/A number from 1 to 5/)
    await appendFile(join(folder, "guess.mjs"), "// changed\n")
    await refuse(/the module .*guess\.mjs has changed since the start of the run/, "train", kept, "--resume")
  })

  it("needs an expert for a new model, and a Node that can run it", async () => {
    const text = await readFile(join(folder, "guess.mjs"), "utf8")
    await writeFile(join(folder, "expertless.mjs"), text.replace("  expert: ", "  nobody: "))
    await refuse(
      /^gigpo: guess to 9 has no expert\. .* need an expert's completions/,
      "init",
      "./expertless.mjs",
      "new",
    )
    expect(await readdir(folder)).not.toContain("new")
    if ((process.features as { typescript?: unknown }).typescript) return
    await copyFile(join(folder, "guess.mjs"), join(folder, "guess.ts"))
    for (const words of [
      ["play", "./guess.ts", "--expert"],
      ["init", "./guess.ts", "new"],
    ])
      await refuse(/guess\.ts is TypeScript, which Node v.* does not run: use Node 22\.18 or later/, ...words)
  })
})
