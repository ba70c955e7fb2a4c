import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { transform } from "esbuild"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { built, gigpo, tiny } from "./gigpo.ts"

const root = join(import.meta.dirname, "../..")
const entry = (name: string) => pathToFileURL(join(root, `dist/entries/${name}.js`)).href

describe.skipIf(!built)("the engine of a module, examples/extend/stored-engine.ts", () => {
  let folder: string
  const run = (...words: string[]) => gigpo(words, { cwd: folder })
  const train = (...words: string[]) =>
    run("train", "here/config.yaml", "-s", "engine=./engine.mjs", "-s", "training.loss.klWeight=0", ...words)
  const reports = async (name: string) =>
    (await readFile(join(folder, name, "metrics.jsonl"), "utf8"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
      .filter(({ iteration }) => iteration > 0)
      .map(({ iteration, metrics }) => [iteration, metrics["loss/total"], metrics["gradient/norm"]])

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-custom-engine-"))
    expect(await run("init", "sokoban", "here", ...tiny)).toMatchObject({ code: 0 })
    for (const [from, to] of [
      ["engine", "engine"],
      ["stored-engine", "here/engine"],
    ]) {
      const { code } = await transform(await readFile(join(root, `examples/extend/${from}.ts`), "utf8"), {
        loader: "ts",
      })
      const text = code
        .replace('"gigpo"', JSON.stringify(entry("index")))
        .replace('"gigpo/engine"', JSON.stringify(entry("engine")))
        .replace("./engine.ts", "../engine.mjs")
      await writeFile(join(folder, `${to}.mjs`), text)
    }
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  it("trains, and a resumed run equals an uninterrupted one", async () => {
    expect(await train("-s", "run=whole", "-s", "training.iterations=3")).toMatchObject({ code: 0 })
    expect(await train("-s", "run=parts", "-s", "training.iterations=2")).toMatchObject({ code: 0 })
    const words = ["--resume", "-s", "training.iterations=3"]
    expect(await run("train", "parts/config.json", ...words)).toMatchObject({ code: 0, stderr: "" })
    expect(await reports("parts")).toEqual(await reports("whole"))
    const config = JSON.parse(await readFile(join(folder, "parts/config.json"), "utf8"))
    expect(config.engine).toEqual({ use: join(folder, "here/engine.mjs"), sha256: expect.stringMatching(/^\w{64}$/) })
    const table = (name: string) => readFile(join(folder, name, "model/logits"))
    expect((await table("parts")).equals(await table("whole"))).toBe(true)
    const report = await run("evaluate", "parts/config.json", "--model", "parts", "--json")
    expect(report).toMatchObject({ code: 0, stderr: expect.not.stringContaining("error") })
    expect(JSON.parse(report.stdout)).toMatchObject({ model: expect.stringContaining("parts/model") })
  })

  it("is rejected, with the place in the file, before the run begins", async () => {
    await writeFile(join(folder, "here/storeless.mjs"), `export default async () => ({ losses: [] })`)
    await writeFile(join(folder, "here/no-function.mjs"), "export default { losses: [] }")
    for (const [engine, problem] of [
      ["./storeless.mjs", /engine\.sample must be a function/],
      ["./no-function.mjs", /no-function\.mjs: its default export must be a function that opens an engine/],
    ] as const) {
      const refused = await train("-s", `engine=${engine}`, "-s", "run=none")
      expect(refused).toMatchObject({ code: 2, stderr: expect.stringMatching(problem) })
    }
    const adapted = await train("-s", "lora={ rank: 4 }", "-s", "run=none")
    expect(adapted.stderr).toMatch(/lora applies to the native engine only/)
    await expect(readFile(join(folder, "none/config.json"))).rejects.toThrow("ENOENT")
  })
})
