import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { applySet, parseConfigDocument, type Setting } from "../../src/cli/config/document.ts"
import { resolveConfig } from "../../src/cli/config/resolve.ts"
import { built, gigpo, tiny } from "./gigpo.ts"

describe("the origin of a configuration key", () => {
  const where = (settings: readonly Setting[], ...path: string[]) => {
    const parsed = parseConfigDocument("model: m\ntraining:\n  groups: 2\n", "config.yaml")
    parsed.document.setIn(["run"], "made by the program")
    for (const setting of settings) applySet(parsed, setting)
    return parsed.where(path)
  }

  it.each<[string, readonly Setting[], string[], string]>([
    ["the file", [], ["training", "groups"], "config.yaml, line 3"],
    ["the program", [], ["run"], "config.yaml"],
    ["no option", [], ["seed"], "config.yaml"],
    ["--set", ["training.groups=3"], ["training", "groups"], "--set"],
    ["--set, of a group", ["training={groups: 3}"], ["training", "groups"], "--set"],
    ["--set, within a new group", ["sft.tasks=3"], ["sft"], "--set"],
    ["--set elsewhere", ["training.groups=3"], ["run"], "config.yaml"],
    ["another option", [{ text: "sft.data=x", from: "--data" }], ["sft", "data"], "--data"],
    ["the last of two", ["sft.data=y", { text: "sft.data=x", from: "--data" }], ["sft", "data"], "--data"],
  ])("%s", (_, settings, path, expected) => {
    expect(where(settings, ...path)).toBe(expected)
  })
})

describe("a name set over a group", () => {
  const text =
    "model: m\nenvironment: { name: sokoban, boxes: 1 }\ntraining: { estimator: { name: gigpo, omega: 0.5, normalization: sample }, loss: { klWeight: 0.2 } }\n"
  const estimator = (...sets: string[]) => resolveConfig(text, sets).training.estimator

  it("keeps the other options", () => {
    const before = estimator() as { normalization?: unknown }
    expect(before.normalization).toBeDefined()
    const after = estimator("training.estimator=grpo") as { name: string; normalization?: unknown }
    expect(after.name).toBe("grpo")
    expect(after.normalization).toEqual(before.normalization)
    expect(estimator("training.estimator=grpo")).toEqual(estimator("training.estimator.name=grpo"))
    const { loss } = resolveConfig(text.replace("loss: {", "loss: { name: clipped-surrogate,"), [
      "training.loss=sapo",
    ]).training
    expect(loss).toMatchObject({ name: "sapo", klWeight: 0.2 })
  })

  it("rejects options that the new one lacks, by name", () => {
    expect(() => resolveConfig(text, ["environment=webshop"])).toThrow(
      /environment\.boxes is an option of sokoban, not of webshop/,
    )
    expect(resolveConfig(text, ["environment={name: webshop}"]).environment).toEqual({ name: "webshop" })
  })
})

describe.skipIf(!built)("messages use the keys as typed (needs dist: npm run build:ts)", () => {
  let folder: string
  const run = async (...words: string[]) => (await gigpo(words, { cwd: folder })).stderr
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-named-"))
    await run("init", "sokoban", "small", ...tiny)
    await writeFile(join(folder, "mine.ts"), "export default 1 as number\n")
    await writeFile(join(folder, "empty.mjs"), "export default {}\n")
  })
  afterAll(async () => await rm(folder, { recursive: true, force: true }))

  it.each([
    ["init of TypeScript", ["init", "./mine.ts", "x"]],
    ["init of nothing", ["init", "./nothere.mjs", "x"]],
    ["init of no environment", ["init", "./empty.mjs", "x"]],
    ["play of nothing", ["play", "./nothere.mjs", "--expert"]],
    ["play of a model that is not there", ["play", "sokoban", "--model", "nowhere"]],
    ["clone of data that is not there", ["sft", "small/config.yaml", "--in-place", "--data", "nothere.jsonl"]],
    ["a file that cannot be made", ["report", "small", "--out", "/proc/x.html"]],
    ["config", ["config", "small/nothere.yaml"]],
  ])("%s", async (_, words) => {
    const stderr = await run(...words)
    expect(stderr).toMatch(/^gigpo: /)
    expect(stderr).not.toContain("--set")
  })

  it("name a folder that cannot contain files", async () => {
    const stderr = await run("report", "small", "--out", "/proc/x.html")
    expect(stderr).toMatch(/Cannot create files in \/proc, although the folder exists/)
  })

  it("warn about more threads than cores", async () => {
    const stderr = await run(
      "evaluate",
      "small/config.yaml",
      "--set",
      "threads=100",
      "--set",
      "training.evaluation.tasks=1",
    )
    expect(stderr).toMatch(/threads is 100, but this process may use \d+ cores?: .*slower/)
  })
})
