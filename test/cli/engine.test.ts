import { cp, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { built, gigpo, type Outcome, type Served, tiny, untilServed } from "./gigpo.ts"

// One machine that has the engine, another that drives it: as two folders.

describe.skipIf(!built)("gigpo engine (needs dist: npm run build:ts)", () => {
  let folder: string
  let there: string
  let here: string
  let served: Served
  const run = (...words: string[]): Promise<Outcome> => gigpo(words, { cwd: here, env: { TINKER_API_KEY: served.key } })
  const engine = () => `engine: { url: "${served.address}", rank: 4 }\n`
  const read = (name: string) => readFile(join(here, name), "utf8")

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-engine-"))
    ;[there, here] = [join(folder, "there"), join(folder, "here")]
    expect(await gigpo(["init", "number-line", "there", ...tiny], { cwd: folder })).toMatchObject({ code: 0 })
    // Weights are nowhere but on the engine's machine.
    const left = (path: string) => !path.endsWith(".safetensors")
    await cp(there, here, { recursive: true, filter: left })
    served = await untilServed(["engine", "model", "--name", "line"], { cwd: there })
    await writeFile(
      join(here, "remote.yaml"),
      `${(await read("config.yaml")).replace("there/model", "model").trimEnd()}\n${engine()}`,
    )
  })
  afterAll(async () => {
    served.kill("SIGKILL")
    await served.ended
    await rm(folder, { recursive: true })
  })

  it("is checked by gigpo doctor, which never prints the key", async () => {
    const { code, stdout, stderr } = await run("doctor", "--engine", served.address)
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
    expect(stdout).toMatch(/line/)
    expect(stdout).not.toContain(served.key)
  })

  it("supports SFT, training, resumption and evaluation like a local engine", async () => {
    expect(await run("sft", "remote.yaml", "--out", "cloned")).toMatchObject({ code: 0 })
    const sets = ["model=cloned", "run=one", "training.iterations=4"].flatMap((set) => ["--set", set])
    const trained = await run("train", "remote.yaml", ...sets)
    expect(trained).toMatchObject({ code: 0 })
    const files = await readdir(join(here, "one"), { recursive: true })
    expect(files).toContain(join("model", "remote.json"))
    expect(files.filter((name) => name.endsWith(".safetensors"))).toEqual([])
    for (const name of files.filter((one) => one.endsWith(".json") || one.endsWith(".jsonl")))
      expect(await read(join("one", name)), name).not.toContain(served.key)
    const more = await run("train", "one/config.json", "--resume", "--set", "training.iterations=6")
    expect(more).toMatchObject({ code: 0 })
    const lines = (await read("one/metrics.jsonl")).trim().split("\n")
    const iterations = lines.map((line) => JSON.parse(line).iteration)
    expect(iterations.filter((one) => one !== undefined).at(-1)).toBe(6)
    const evaluated = await run("evaluate", "remote.yaml", "--model", "one/model", "--json")
    expect(evaluated.code).toBe(0)
    expect(JSON.parse(evaluated.stdout).success).toBeGreaterThanOrEqual(0)
    expect(await run("export", "one", "--as", "adapter", "--out", "adapter")).toMatchObject({ code: 0 })
    expect(await readdir(join(here, "adapter"))).toEqual(
      expect.arrayContaining(["adapter_config.json", "adapter_model.safetensors"]),
    )
    const again = await run("export", "one", "--as", "adapter", "--out", "adapter")
    expect(again).toMatchObject({ code: 2, stderr: expect.stringMatching(/adapter.*overwrite/s) })
  })

  it("rejects unsupported options before the run begins", async () => {
    const { code, stderr } = await run("train", "remote.yaml", "--set", "run=none", "--set", "training.loss.name=dgpo")
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringMatching(/cannot train this.*choose a loss that/),
    })
    expect(await readdir(here)).not.toContain("none")
  })

  it("requires a key, in a form that clients accept", async () => {
    const bare = await gigpo(["doctor", "--engine", served.address], {
      cwd: here,
      env: { TINKER_API_KEY: "tml-other" },
    })
    expect(bare.code).not.toBe(0)
    expect(`${bare.stdout}${bare.stderr}`).toMatch(/401|key/)
    const short = await gigpo(["engine", "model"], { cwd: there, env: { GIGPO_API_KEY: "secret" } })
    expect(short).toMatchObject({ code: 2, stderr: expect.stringMatching(/GIGPO_API_KEY must be a key/) })
    expect(await gigpo(["engine", "nowhere"], { cwd: there })).toMatchObject({ code: 2, stdout: "" })
  })

  it("ends at Ctrl-C", async () => {
    served.kill("SIGINT")
    expect(await served.ended).toMatchObject({ code: 0, stdout: `${served.address}\n${served.key}\n` })
  })
})
