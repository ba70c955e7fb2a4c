import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { openBenchmark } from "../../src/benchmark/benchmark.ts"
import { readEvaluation } from "../../src/benchmark/evaluation-file.ts"
import { benchmarkNames } from "../../src/benchmark/find.ts"
import { built, type GigpoOptions, gigpo, type Outcome, tiny } from "./gigpo.ts"

describe.skipIf(!built)("gigpo benchmark, and evaluate on one (needs dist: npm run build:ts)", () => {
  let folder = ""
  const run = async (words: readonly string[], options: Partial<GigpoOptions> = {}) =>
    await gigpo(words, { cwd: folder, ...options })
  const benchmark = "sokoban/6x6@1"
  const asBenchmark = ["--set", "environment.size=[6,6]", "--set", "environment.searchDepth=30"]
  const evaluate = (...words: string[]) =>
    run(["evaluate", "small/config.yaml", "--set", "training.rollout.maxCompletionTokens=2", ...words])
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-benchmark-cli-"))
    expect(await run(["init", "sokoban", "small", ...tiny, ...asBenchmark])).toMatchObject({ code: 0, stderr: "" })
  })
  afterAll(() => rm(folder, { recursive: true }))

  function refused({ code, stdout, stderr }: Outcome, message: RegExp): void {
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" })
    expect(stderr).toMatch(message)
    expect(stderr).not.toMatch(/^\s+at /m)
  }

  it("lists the benchmarks, and describes one", async () => {
    const { code, stdout } = await run(["benchmark", "list"])
    expect(code).toBe(0)
    for (const name of benchmarkNames) expect(stdout).toContain(`\n${name} `)
    const listed = JSON.parse((await run(["benchmark", "list", "--json"])).stdout)
    expect(listed.map(({ name }: { name: string }) => name)).toEqual(benchmarkNames)
    const shown = (await run(["benchmark", "show", benchmark])).stdout
    expect(shown).toMatch(/^tasks +256$/m)
    expect(shown).toMatch(/^responses +[0-9a-f]{64}$/m)
  })

  it("is the same in every language and time zone", async () => {
    const { tasks, digests } = await openBenchmark("cards/points24@1")
    const env = { LANG: "tr_TR.UTF-8", LC_ALL: "tr_TR.UTF-8", TZ: "Asia/Kathmandu" }
    const told = JSON.parse((await run(["benchmark", "show", "cards/points24@1", "--tasks", "--json"], { env })).stdout)
    expect(told.list).toEqual(tasks)
    expect(told.digests).toEqual(digests)
  })

  it("is used for an evaluation, with the same file of outcomes for any concurrency", async () => {
    const first = await evaluate("--benchmark", benchmark, "--repeats", "2", "--out", "a.jsonl")
    expect(first).toMatchObject({ code: 0, stderr: "" })
    expect(first.stdout).toMatch(/^small\/model on sokoban: benchmark sokoban\/6x6@1, 256 tasks, 2 episodes each$/m)
    expect(first.stdout).toMatch(/^ {2}pass@k +1: [\d.]+ %, 2: [\d.]+ %$/m)
    const { header, episodes } = await readEvaluation(join(folder, "a.jsonl"))
    expect(header).toMatchObject({ benchmark, tasks: 256, repeats: 2, model: { name: "small/model" } })
    expect(header.model!.sha256).toMatch(/^[0-9a-f]{64}$/)
    expect(header.settings).toMatchObject({ environment: { rules: false } })
    expect(episodes).toHaveLength(512)
    const second = [
      "--set",
      "training.rollout.concurrency=3",
      "--benchmark",
      benchmark,
      "--repeats",
      "2",
      "--out",
      "b.jsonl",
    ]
    expect(await evaluate(...second)).toMatchObject({ code: 0 })
    expect(await readFile(join(folder, "b.jsonl"), "utf8")).toBe(await readFile(join(folder, "a.jsonl"), "utf8"))
  })

  it("prints the options that it overrides", async () => {
    const { code, stdout, stderr } = await evaluate("--set", "environment.boxes=2", "--benchmark", benchmark, "--json")
    expect(code).toBe(0)
    expect(stderr).toContain(`${benchmark} overrides these options of the configured environment: boxes.`)
    const { digests } = await openBenchmark(benchmark, { rules: false, thinking: "off", history: 0 })
    expect(JSON.parse(stdout)).toMatchObject({ benchmark, tasks: 256, repeats: 1, episodes: 256, digests })
  })

  it("rejects incompatible arguments before anything is played or written", async () => {
    const before = await readdir(folder)
    refused(
      await evaluate("--benchmark", "households/seen@1"),
      /is for alfworld, but the configured environment is sokoban/,
    )
    refused(
      await evaluate("--benchmark", benchmark, "--set", "environment.wrapper.name=plan-first"),
      /remove environment\.wrapper/,
    )
    refused(await evaluate("--benchmark", "sokoban/6x7@1"), /Did you mean sokoban\/6x6@1\?/)
    refused(await evaluate("--benchmark", benchmark, "--out", "none/a.jsonl"), /There is no folder/)
    refused(
      await evaluate("--benchmark", benchmark, "--out", "a.jsonl"),
      /a\.jsonl already exists\. Replace it \(--overwrite\)/,
    )
    refused(await evaluate("--repeats", "2"), /--repeats needs a benchmark/)
    refused(await evaluate("--out", "c.jsonl"), /--out needs a benchmark/)
    refused(await run(["benchmark", "shw"]), /unknown command 'shw'/)
    refused(await run(["benchmark", "create", "small/config.yaml", "--out", "a.txt"]), /must end in \.json/)
    expect(await readdir(folder)).toEqual(before)
  })

  it("pins the tasks of a configuration, and rejects different ones", async () => {
    const pinned = await run([
      "benchmark",
      "create",
      "small/config.yaml",
      "--tasks",
      "12",
      "--out",
      "mine.benchmark.json",
    ])
    expect(pinned).toMatchObject({ code: 0, stderr: "" })
    expect(pinned.stdout).toMatch(/^mine@1: 12 tasks, environment [0-9a-f]{16}, in mine\.benchmark\.json\n$/)
    expect((await evaluate("--benchmark", "mine.benchmark.json")).stdout).toContain(
      "benchmark mine@1, 12 tasks, one episode each",
    )
    const file = join(folder, "mine.benchmark.json")
    const text = await readFile(file, "utf8")
    const [key] = JSON.parse(text).keys
    const changed = async (other: string) => {
      await writeFile(file, text.replace(/"tasks": "\w{8}/, '"tasks": "00000000').replace(key, other))
      return await evaluate("--benchmark", "mine.benchmark.json")
    }
    const refused = (message: RegExp) => ({ code: 2, stderr: expect.stringMatching(message) })
    expect(await changed("0123456789abcdef")).toMatchObject(refused(/This is not the benchmark mine@1: task 0 /))
    const hidden = await changed("\\u001b[31m")
    expect(hidden).toMatchObject(refused(/its keys is not valid in a benchmark/))
    expect(hidden.stderr).not.toContain("\u001b")
  })
})
