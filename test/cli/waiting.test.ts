import { mkdtemp, rm, writeFile } from "node:fs/promises"
import type { AddressInfo } from "node:net"
import { createServer, type Server } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { built, gigpo, tiny } from "./gigpo.ts"

/** Any work at all is announced. */
const env = { GIGPO_HEARTBEAT: "0.001" }

describe.skipIf(!built)("progress messages of commands (need dist: npm run build:ts)", () => {
  let folder: string
  let silent: Server
  const run = async (...words: string[]) => await gigpo(words, { cwd: folder, env })

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-waiting-"))
    const made = await run("init", "sokoban", "small", ...tiny)
    expect(made).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/Waiting .*(the expert|episodes) of sokoban/),
    })
    await writeFile(
      join(folder, "corpus.jsonl"),
      `${JSON.stringify({ id: "1", contents: "Lisbon is in Portugal." })}\n`,
    )
    silent = createServer(() => {})
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve))
  })
  afterAll(async () => {
    silent.close()
    await rm(folder, { recursive: true, force: true })
  })

  const config = "small/config.yaml"
  const few = ["--set", "training.groups=2", "--set", "training.groupSize=2", "--set", "training.evaluation.tasks=2"]
  // Playing lasts longer than the time between two looks, on a fast processor too.
  const many = ["--set", "training.groups=4", "--set", "training.groupSize=8"]
  const short = [...few, "--set", "training.iterations=1", "--set", "sft.tasks=50", "--set", "sft.epochs=1"]
  const engine = () => `http://127.0.0.1:${(silent.address() as AddressInfo).port}`
  const commands: Record<string, [words: () => string[], said: RegExp, code?: number]> = {
    sft: [() => ["sft", config, "--in-place", ...short], /task of the expert \d+\/50/],
    train: [() => ["train", config, ...short], /iteration 1\/1 .* \d\/\d/],
    "train --json": [() => ["train", config, ...short, "--set", "run=json", "--json"], /iteration 1\/1 .* \d\/\d/],
    evaluate: [() => ["evaluate", config, ...few], /opening the model small\/model/],
    "evaluate --json": [() => ["evaluate", config, ...few, "--json"], /episodes? of sokoban|episode \d\/2/],
    anchors: [() => ["anchors", config, ...many], /episodes of sokoban|episode \d+\/32|the expert on the same tasks/],
    play: [() => ["play", config, "--task", "500", "--expert"], /drawing task \d+ of 500/],
    "play with a model": [() => ["play", config], /sampling the completion of step \d|opening the model/],
    estimate: [() => ["estimate", config, "--json"], /episodes of sokoban/],
    doctor: [() => ["doctor", "--json"], /self-test: sampling and training/],
    "train on an engine": [
      () => [
        "train",
        config,
        "--set",
        "run=far",
        "--set",
        `engine.url=${engine()}`,
        "--set",
        "engine.connectTimeout=1",
      ],
      /the engine at http/,
      4,
    ],
    "benchmark show": [() => ["benchmark", "show", "sokoban/6x6@1", "--tasks", "--json"], /opening the benchmark/],
    "benchmark create": [
      () => ["benchmark", "create", config, "--out", "mine.json", "--tasks", "200"],
      /200 tasks of sokoban/,
    ],
    report: [() => ["report", "small/run", "--out", "report.html"], /reading small\/run|writing episodes/],
    export: [() => ["export", "small/run", "--as", "csv", "--out", "run.csv"], /exporting small\/run as csv/],
  }

  // In this order: what is trained is reported and exported.
  it.each(Object.entries(commands))("%s", async (_, [words, said, code = 0]) => {
    const outcome = await run(...words())
    expect(outcome).toMatchObject({ code, stderr: expect.stringMatching(said) })
    expect(outcome.stdout).not.toContain("Waiting (")
    if (words().includes("--json") && code === 0)
      for (const line of outcome.stdout.trim().split("\n")) expect(() => JSON.parse(line)).not.toThrow()
  })

  it("doctor --engine", async () => {
    const said = /Waiting .*the engine at http/
    let stopped = false
    const outcome = await gigpo(["doctor", "--engine", engine()], {
      cwd: folder,
      env,
      onErrors: (stderr, kill) => {
        if (stopped || !said.test(stderr)) return
        stopped = true
        kill("SIGINT")
      },
    })
    expect(outcome).toMatchObject({ code: 130, stdout: "", stderr: expect.stringMatching(said) })
  })

  it("end once a service waits for clients", async () => {
    const words = ["retriever", "corpus.jsonl", "--port", "0"]
    let after = ""
    const outcome = await gigpo(words, {
      cwd: folder,
      env,
      onOutput: (_, kill) => setTimeout(() => kill("SIGTERM"), 300),
      onErrors: (stderr) => {
        after = stderr.split("Ctrl-C stops the server.")[1] ?? ""
      },
    })
    expect(outcome.code).toBe(0)
    expect(after).not.toContain("Waiting (")
  })

  it("are absent if disabled", async () => {
    const outcome = await gigpo(["--heartbeat", "0", "evaluate", config, ...few], {
      cwd: folder,
      env: { GIGPO_HEARTBEAT: "1" },
    })
    expect(outcome).toMatchObject({ code: 0, stderr: "" })
    const wrong = await gigpo(["--heartbeat", "soon", "doctor"], { cwd: folder })
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining("number of seconds") })
    const former = await gigpo(["--silence", "30", "doctor"], { cwd: folder })
    expect(former).toMatchObject({ code: 2, stderr: expect.stringContaining("--silence was renamed to --heartbeat.") })
  })
})
