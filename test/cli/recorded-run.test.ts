import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { asyncBufferFromFile, parquetReadObjects } from "hyparquet"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { madeFolder, reportsOf } from "../view/run-folder.ts"
import { readEventFolder } from "../view/sinks/event-files.ts"
import { FakeMlflow } from "../view/sinks/fake-mlflow.ts"
import { built, gigpo, type Outcome, tiny } from "./gigpo.ts"

describe.skipIf(!built)("a recorded run (needs dist: npm run build:ts)", () => {
  let folder: string
  let server: FakeMlflow
  let trained: Outcome
  const run = async (...words: string[]) => await gigpo(words, { cwd: folder })
  const reports = async () =>
    (await readFile(join(folder, "runs/sokoban/metrics.jsonl"), "utf8"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
  const text = async (...words: string[]) => {
    const { code, stdout, stderr } = await run(...words)
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
    return stdout
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-recorded-"))
    server = await FakeMlflow.start()
    expect(await run("init", "sokoban", "small", ...tiny)).toMatchObject({ code: 0 })
    const sets = ["run=runs/sokoban", "tensorboard=true", `mlflow.url=${server.url}`, "mlflow.experiment=boxes"]
    trained = await run(
      "train",
      "small/config.yaml",
      ...[...sets, "training.iterations=3"].flatMap((set) => ["--set", set]),
    )
  })
  afterAll(async () => {
    await server[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })

  it("is logged to TensorBoard and MLflow if configured", async () => {
    expect(trained).toMatchObject({ code: 0, stderr: "" })
    const events = await readEventFolder(join(folder, "runs/sokoban/tensorboard"))
    expect(events.map(({ step }) => step)).toEqual([0, 1, 2, 3])
    const returns = (await reports()).flatMap(({ metrics }) => metrics["episode/return"] ?? [])
    expect(events.flatMap(({ values }) => values["episode/return"] ?? [])).toEqual(returns.map(Math.fround))
    const [sent] = server.runs
    expect([...server.experiments.keys()]).toEqual(["boxes"])
    expect(sent).toMatchObject({ name: "sokoban", status: "FINISHED" })
    expect(sent!.params.get("environment.name")).toBe("sokoban")
    expect(sent!.metrics.get("episode/return")!.map(({ value }) => value)).toEqual(returns)
  })

  it("can be logged elsewhere after a resume", async () => {
    const resumed = [...["--resume", "--set", "tensorboard=false", "--set", "mlflow.experiment=other"]]
    const config = join("runs", "sokoban", "config.json")
    expect(await run("train", config, ...resumed)).toMatchObject({ code: 0, stderr: "" })
  })

  it("is listed, as text and as JSON", async () => {
    const [head, line, ...others] = (await text("runs")).trimEnd().split("\n")
    expect(head).toMatch(/^RUN +STATE +ITERATION +SUCCESS +TRAINING +TIME LEFT +LAST REPORT$/)
    expect(line).toMatch(/^sokoban +done +3\/3 +[\d.]+ % \([\d.]+ % to [\d.]+ %\) +[\d.]+ % +– +[\d.]+ (s|min) ago$/)
    expect(others).toEqual([])
    const last = (await reports()).at(-1)
    expect(JSON.parse(await text("runs", ".", "--json"))).toEqual([
      {
        ...{
          directory: "runs/sokoban",
          name: "runs/sokoban",
          state: "done",
          iteration: 3,
          iterations: 3,
          time: last.time,
        },
        evaluation: { iteration: 3, ...last.evaluation },
        metrics: last.metrics,
      },
    ])
    expect(await text("runs", "small")).toMatch(/^There are no runs in small\. Give /)
    expect(await run("runs", "nowhere")).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/There is no folder nowhere/),
    })
  })

  it("has its episodes listed and printed", async () => {
    const all = JSON.parse(await text("episodes", "runs/sokoban", "--json"))
    expect(all.map(({ id }: { id: string }) => id)).toEqual(["3/0/0", "3/0/1", "3/0/2", "3/1/0", "3/1/1", "3/1/2"])
    const lines = (await text("episodes", "runs/sokoban", "--iteration", "2")).trimEnd().split("\n")
    expect(lines).toHaveLength(7)
    expect(lines[1]).toMatch(/^2\/0\/0 +[✓✗] +-?[\d.]+ +\d+ +[\d,]+ +\w+ +\{.*\}$/)
    const lost = await text("episodes", "runs/sokoban", "--unsuccessful", "--json")
    const won = await text("episodes", "runs/sokoban", "--succeeded", "--json")
    expect(JSON.parse(lost).length + JSON.parse(won).length).toBe(6)
    expect(await text("episodes", "runs/sokoban", "--task", "no such")).toBe(
      "None of the 6 episodes of iteration 3 match.\n",
    )
    const group = JSON.parse(await text("episodes", "runs/sokoban", "--show", "1/1/2", "--json"))
    const shown = await text("episodes", "runs/sokoban", "--show", "1/1/2")
    const { steps } = group.episodes[2]
    expect(shown.match(/^--- step /gm)).toHaveLength(steps.length)
    for (const { observation, action } of steps) {
      expect(shown).toContain(`\n${observation}\n`)
      expect(shown).toContain(`\naction      ${action}`)
    }
  })

  it("has the episodes of its evaluations listed and printed", async () => {
    const [before] = await reports()
    const list = JSON.parse(await text("episodes", "runs/sokoban", "--evaluation", "--iteration", "0", "--json"))
    expect(list).toHaveLength(Math.min(8, before.evaluation.episodes))
    expect(list.filter(({ success }: { success: number }) => success === 0).length).toBeGreaterThan(0)
    const newest = JSON.parse(await text("episodes", "runs/sokoban", "--evaluation", "--json"))
    expect(newest[0].id).toMatch(/^3\/\d+\/0$/)
    const id = list[0].id
    const group = JSON.parse(await text("episodes", "runs/sokoban", "--evaluation", "--show", id, "--json"))
    expect(group.episodes).toHaveLength(1)
    const shown = await text("episodes", "runs/sokoban", "--evaluation", "--show", id)
    expect(shown.match(/^--- step /gm)).toHaveLength(group.episodes[0].steps.length)
  })

  it("is exported as a table and as event files, which are not replaced by default", async () => {
    await text("export", "runs/sokoban", "--as", "csv", "--out", "run.csv")
    const rows = (await readFile(join(folder, "run.csv"), "utf8")).trimEnd().split("\r\n")
    const column = rows[0]!.split(",").indexOf("episode/return")
    const returns = (await reports()).map(({ metrics }) => String(metrics["episode/return"] ?? ""))
    expect(rows.slice(1).map((row) => row.split(",")[column])).toEqual(returns)
    for (const overwrite of [[], ["--overwrite"]]) {
      await text("export", "runs/sokoban", "--as", "tensorboard", "--out", "events", ...overwrite)
      const events = await readEventFolder(join(folder, "events"))
      expect(events).toEqual(await readEventFolder(join(folder, "runs/sokoban/tensorboard")))
      expect((await readdir(join(folder, "events"))).filter((name) => name.includes("tfevents"))).toHaveLength(1)
    }
    for (const [format, out] of [
      ["csv", "run.csv"],
      ["tensorboard", "events"],
    ] as const)
      expect(await run("export", "runs/sokoban", "--as", format, "--out", out)).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/\[FILE_EXISTS\]/),
      })
    await writeFile(join(folder, "run.csv"), "mine")
    await text("export", "runs/sokoban", "--as", "csv", "--out", "run.csv", "--overwrite")
    expect((await readFile(join(folder, "run.csv"), "utf8")).startsWith("iteration,time,")).toBe(true)
  })

  it("has its episodes exported as JSON lines and as a Parquet table", async () => {
    for (const format of ["jsonl", "parquet"]) await text("export", "runs/sokoban", "--as", format, "--out", format)
    const episodes = (await readFile(join(folder, "jsonl"), "utf8")).trimEnd().split("\n")
    expect(episodes).toHaveLength(18)
    const rows = await parquetReadObjects({ file: await asyncBufferFromFile(join(folder, "parquet")) })
    const actions = episodes.flatMap((line) => JSON.parse(line).steps.map(({ action }: { action: string }) => action))
    expect(rows.map(({ action }) => action)).toEqual(actions)
    const bare = await madeFolder(join(folder, "elsewhere", "bare"), {}, reportsOf(1))
    expect(await run("export", bare, "--as", "jsonl", "--out", "none")).toMatchObject({
      ...{ code: 2, stderr: expect.stringMatching(/No episodes were recorded in .*recordEpisodes/) },
    })
    expect(await readdir(folder)).not.toContain("none")
  })

  it.each([
    [["episodes", "small"], /There is no run in small/],
    [["export", "small", "--as", "csv", "--out", "x"], /There is no run in small/],
    [["export", "runs/sokoban", "--as", "adapter", "--out", "x"], /was trained on this machine.*model/],
    [["export", "runs/sokoban", "--as", "xml", "--out", "x"], /Allowed choices are csv, .*tensorboard/],
    [["export", "runs/sokoban", "--as", "csv"], /required option.*--out/],
    [["episodes", "runs/sokoban", "--iteration", "9"], /No episodes of iteration 9 .*recorded are iterations 1 to 3/],
    [
      ["episodes", "runs/sokoban", "--evaluation", "--iteration", "1"],
      /No episodes of the evaluation after iteration 1 .*recorded are those after 0, /,
    ],
    [["episodes", "runs/sokoban", "--show", "3"], /iteration\/group\/episode, as in 12\/3\/5/],
    [["episodes", "runs/sokoban", "--show", "3/9/0"], /Group 9 of iteration 3 was not recorded/],
    [["episodes", "runs/sokoban", "--show", "3/0/7"], /has 3 episodes; member 7 is not in 0 to 2/],
    [["episodes", "runs/sokoban", "--failed"], /--failed was renamed to --unsuccessful/],
    [["episodes", "runs/sokoban", "--unsuccessful", "--succeeded"], /--unsuccessful.*cannot be used with.*--succeeded/],
    [["train", "small/config.yaml", "--set", "mlflow.url=ftp://x"], /mlflow\.url must be the http or https address/],
  ])("%j is rejected with what to do", async (words, message) => {
    expect(await run(...words)).toMatchObject({ code: 2, stdout: "", stderr: expect.stringMatching(message) })
  })
})
