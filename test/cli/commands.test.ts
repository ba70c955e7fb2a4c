import { existsSync } from "node:fs"
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { built, type GigpoOptions, gigpo, type Outcome, tiny } from "./gigpo.ts"

const root = join(import.meta.dirname, "../..")

describe.skipIf(!built)("gigpo (needs dist: npm run build:ts)", () => {
  let folder: string
  const run = async (words: readonly string[], options: Partial<GigpoOptions> = {}) =>
    await gigpo(words, { cwd: folder, ...options })
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-cli-"))
    expect(await run(["init", "sokoban", "small", ...tiny])).toMatchObject({ code: 0, stderr: "" })
  })
  afterAll(async () => await rm(folder, { recursive: true, force: true }))

  function refused({ code, stdout, stderr }: Outcome, expected: number, message: RegExp): void {
    expect({ code, stdout }).toEqual({ code: expected, stdout: "" })
    expect(stderr).toMatch(message)
    expect(stderr).not.toMatch(/^\s+at /m)
  }

  describe("without arguments", () => {
    it("prints its version and the help of each command", async () => {
      const { version } = JSON.parse(await readFile(join(root, "package.json"), "utf8"))
      expect(await run(["--version"])).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" })
      const { code, stdout } = await run(["--help"])
      expect(code).toBe(0)
      const commands = [
        "init",
        "sft",
        "train",
        "evaluate",
        "benchmark",
        "runs",
        "episodes",
        "export",
        "play",
        "chat",
        "serve",
        "retriever",
        "estimate",
        "algorithms",
        "config",
        "recover",
        "doctor",
      ]
      for (const command of commands) expect(stdout).toMatch(new RegExp(`^  ${command} `, "m"))
      const helps = await Promise.all(commands.map((command) => run([command, "--help"])))
      for (const [index, help] of helps.entries()) {
        expect(help).toMatchObject({ code: 0, stderr: "" })
        expect(help.stdout).toContain(`Usage: gigpo ${commands[index]}`)
      }
    })

    it.each([
      [[], /Usage: gigpo/],
      [
        ["sft", "small/config.yaml", "-s", "seed=1", "threads=1"],
        /too many arguments.* Give each setting its own --set: -s seed=1 -s threads=2\n\(--help/,
      ],
      [["trian"], /unknown command 'trian'\n.*Did you mean train\?/],
      [["panel", "list"], /The command panel was renamed to benchmark\./],
      [["trian", "--help"], /unknown command 'trian'\n.*Did you mean train\?/],
      [["--debug", "-h", "fly", "-h"], /unknown command 'fly'/],
      [["train"], /missing required argument 'config'/],
      [["train", "c.yaml", "--resum"], /unknown option '--resum'/],
      [["train", "c.yaml", "--resume", "--overwrite"], /--resume.*cannot be used with.*--overwrite/],
      [["sft", "c.yaml"], /give --out <folder>, or --in-place/],
      [["sft", "c.yaml", "--out", "x", "--in-place"], /--in-place.*cannot be used with.*--out/],
      [["sft", "c.yaml", "--in-place", "--resume", "--overwrite"], /--resume.*cannot be used with.*--overwrite/],
      [["play", "c.yaml", "--task", "-1"], /'-1' is invalid.*integer from 0/],
      [
        ["train", "nowhere.yaml"],
        /^gigpo: Could not read nowhere.yaml: it does not exist; check the path. \[BAD_CONFIG\]/,
      ],
    ] as [string[], RegExp][])("rejects %j with exit code 2", async (words, message) => {
      refused(await run(words), 2, message)
    })
  })

  describe("doctor", () => {
    it("reports a working engine, as text and as JSON", async () => {
      const { code, stdout } = await run(["doctor"])
      expect(code).toBe(0)
      for (const name of ["gigpo", "Node.js", "memory", "CPU", "GPU", "self-test"])
        expect(stdout).toMatch(new RegExp(`${name} `))
      const report = JSON.parse((await run(["doctor", "--json"])).stdout)
      expect(report).toMatchObject({
        ok: true,
        findings: expect.arrayContaining([expect.objectContaining({ name: "self-test", state: "ok" })]),
      })
    })

    it.skipIf(existsSync(join(root, "prebuilds")))("exits with 3 and the fix if the addon is missing", async () => {
      const env = { PREBUILDS_ONLY: "1" } // node-gyp-build then does not look at what was built here
      const { code, stdout } = await run(["doctor"], { env })
      expect(code).toBe(3)
      expect(stdout).toMatch(/MISSING +native addon.*cmake-js/)
      refused(
        await run(["evaluate", "small/config.yaml"], { env }),
        3,
        /No native build of gigpo can be loaded.*\[NATIVE_MISSING\]/,
      )
    })
  })

  describe("init", () => {
    it("writes a configuration with the given settings, and a matching model", async () => {
      expect((await readdir(join(folder, "small"))).sort()).toEqual(["config.schema.json", "config.yaml", "model"])
      const [first] = (await readFile(join(folder, "small/config.yaml"), "utf8")).split("\n")
      expect(first).toBe("# yaml-language-server: $schema=config.schema.json")
      const { stdout } = await run(["config", "small/config.yaml"])
      expect(stdout).toMatch(/^ {2}hiddenSize: 32$/m)
      expect(stdout).toMatch(/^model: small\/model$/m)
      const shape = JSON.parse(await readFile(join(folder, "small/model/config.json"), "utf8"))
      expect(shape).toMatchObject({ hidden_size: 32, num_hidden_layers: 1, num_attention_heads: 2 })
    })

    it("rejects existing files, unknown environments and invalid settings, and writes nothing", async () => {
      const before = await readFile(join(folder, "small/config.yaml"), "utf8")
      refused(await run(["init", "sokoban", "small"]), 2, /small exists and is not empty/)
      expect(await readFile(join(folder, "small/config.yaml"), "utf8")).toBe(before)
      refused(await run(["init", "sokobann", "other"]), 2, /no starter configuration for sokobann/)
      refused(
        await run(["init", "sokoban", "other", "-s", "initialModel.layer=1"]),
        2,
        /did you mean initialModel.layers\?/,
      )
      refused(
        await run(["init", "sokoban", "other", "-s", "environment.boxes=99"]),
        2,
        /--set: environment.boxes must be an integer from 1 to 20, not 99/,
      )
      expect(await readdir(folder)).toEqual(["small"])
    })
  })

  describe("hints", () => {
    it("contain the command as it was called", async () => {
      const begin = async (env: Readonly<Record<string, string>>) => (await run(["--help"], { env })).stdout
      expect(await begin({})).toContain("start from scratch: gigpo init sokoban demo")
      expect(await begin({ npm_command: "exec" })).toContain("start from scratch: npx gigpo init sokoban demo")
      const made = await run(["init", "sokoban", "hinted", ...tiny], { env: { npm_command: "exec" } })
      expect(made.stdout).toMatch(
        /^ {2}npx gigpo sft .*\n {2}npx gigpo train hinted\/config.yaml .*\n {2}npx gigpo view hinted /m,
      )
    })
  })

  describe("config", () => {
    it("lists the main keys without a file, all keys on request, and the resolved configuration of a file", async () => {
      const main = (await run(["config"])).stdout
      expect(main).toMatch(/^ {2}groupSize: 8 +# Episodes per task\.$/m)
      expect(main.split("\n").length).toBeLessThan(130)
      const all = (await run(["config", "--all"])).stdout
      expect(all).toMatch(/^ {2}# Episodes per task. Default 8.\n {2}groupSize: 8$/m)
      const { stdout } = await run(["config", "small/config.yaml", "-s", "training.groups=7"])
      expect(stdout).toMatch(/^ {2}groups: 7$/m)
    })

    it("shows one branch, and suggests similar keys", async () => {
      expect((await run(["config", "training.estimator.hgpo"])).stdout).toMatch(/^ {4}name: hgpo\n/m)
      expect((await run(["config", "small/config.yaml", "seed"])).stdout).toMatch(/^# .*\nseed: \d+\n$/)
      refused(await run(["config", "training.estimtor"]), 2, /did you mean training\.estimator\? \[BAD_ARGUMENT\]\n$/)
    })

    it("prints the schema that init writes", async () => {
      const schema = JSON.parse((await run(["config", "--schema"])).stdout)
      expect(schema).toMatchObject({ $schema: expect.stringContaining("2020-12"), type: "object" })
      expect(JSON.parse(await readFile(join(folder, "small/config.schema.json"), "utf8"))).toEqual(schema)
      refused(await run(["config", "training", "--schema"]), 2, /--schema takes no other argument/)
    })

    it("rejects a file with errors and prints their lines", async () => {
      await writeFile(
        join(folder, "wrong.yaml"),
        "model: m\nenvironment: { name: sokoban }\ntraining:\n  itterations: 3\n",
      )
      refused(
        await run(["config", "wrong.yaml"]),
        2,
        /^gigpo: wrong.yaml, line 4: training.itterations is not an option; did you mean training.iterations\? \[BAD_CONFIG\]\n$/,
      )
      refused(
        await run(["config", "small/config.yaml", "-s", "environment.name=chess"]),
        2,
        /--set: environment.name must be "sokoban" or .*, not "chess"/,
      )
    })
  })

  describe("sft, train, evaluate and play", () => {
    it("reject a missing model", async () => {
      const model = ["small/config.yaml", "--set", "model=nowhere"]
      for (const words of [["train"], ["evaluate"], ["play"], ["sft", "--out", "x"]])
        refused(await run([words[0]!, ...model, ...words.slice(1)]), 2, /nowhere.*\[BAD_(TOKENIZER|MODEL)\]/)
      expect(await readdir(folder)).not.toContain("runs")
    })

    it("show a stack only with --debug or DEBUG", async () => {
      const words = ["evaluate", "small/config.yaml", "--set", "model=nowhere"]
      expect((await run([...words, "--debug"])).stderr).toMatch(/^ +at /m)
      expect((await run(words, { env: { DEBUG: "1" } })).stderr).toMatch(/^ +at /m)
    })

    it("work in sequence, without escape codes in a pipe", async () => {
      const cloned = await run(["sft", "small/config.yaml", "--out", "cloned"])
      expect(cloned).toMatchObject({ code: 0, stderr: "" })
      expect(cloned.stdout).toMatch(
        /^Learning rate .*\nepoch 1\/2 {2}loss [\d.]+ {2}\d+ completions {2}[\d.]+ s\nepoch 2\/2 .*\nThe model is in cloned.\n$/,
      )

      const trained = await run(["train", "small/config.yaml", "--set", "model=cloned"])
      expect(trained).toMatchObject({ code: 0, stderr: "" })
      const lines = trained.stdout.trim().split("\n")
      expect(lines.filter((line) => line.startsWith("iteration "))).toHaveLength(6)
      expect(lines[1]).toBe("To watch it in a browser: gigpo view small/run")
      expect(lines[3]).toMatch(
        /^iteration 1\/6 {2}success \S+ {2}return \S+ {2}steps .* loss \S+ {2}KL\(old\) \S+ {2}entropy .* tokens\/s .* left$/,
      )
      expect(lines.filter((line) => line.startsWith("evaluation after "))).toHaveLength(3)
      expect(lines.at(-1)).toBe(
        "The trained model is in small/run/model. To evaluate it: " +
          "gigpo evaluate small/run/config.json --model small/run/model",
      )
      expect((await readdir(join(folder, "small/run"))).sort()).toEqual([
        "checkpoints",
        "config.json",
        "episodes",
        "metrics.jsonl",
        "model",
      ])

      const evaluated = await run(["evaluate", "small/run/config.json", "--model", "small/run/model"])
      expect(evaluated).toMatchObject({ code: 0, stderr: "" })
      expect(evaluated.stdout).toMatch(/4 held-out tasks.*\n +success +[\d.]+ % \(95 %: [\d.]+ % to [\d.]+ %\)/)
      const json = await run(["evaluate", "small/run/config.json", "--model", "small/run/model", "--json"])
      const report = JSON.parse(json.stdout)
      expect(report).toMatchObject({ model: "small/run/model", environment: "sokoban", episodes: 4, failed: 0 })
      const metrics = (await readFile(join(folder, "small/run/metrics.jsonl"), "utf8")).trim().split("\n")
      expect(JSON.parse(metrics.at(-1)!).evaluation).toEqual(
        expect.objectContaining({ success: report.success, meanReturn: report.meanReturn }),
      )

      const played = await run(["play", "small/run/config.json", "--model", "small/run/model", "--task", "1"])
      expect(played).toMatchObject({ code: 0, stderr: "" })
      expect(played.stdout.match(/--- first prompt/g)).toHaveLength(1)
      expect(played.stdout).toMatch(
        /--- step 1\n(.*\n)+completion .*\naction .*\nreward .*\n(.*\n)*.*: \d+ steps, return /,
      )
      expect(played.stdout).toMatch(/--- last observation\n(.*\n)+The episode/)
      for (const { stdout } of [cloned, trained, evaluated, json, played]) expect(stdout).not.toContain("\x1b")
    })

    it("do not change an existing run without an option", async () => {
      const before = await readFile(join(folder, "small/run/metrics.jsonl"), "utf8")
      refused(await run(["train", "small/run/config.json"]), 2, /--resume.*--overwrite.*\[RUN_EXISTS\]/)
      refused(
        await run(["train", "small/run/config.json", "--resume", "-s", "training.groups=9"]),
        2,
        /training.groups was 2 and is now 9/,
      )
      expect(await readFile(join(folder, "small/run/metrics.jsonl"), "utf8")).toBe(before)
    })

    it("continue a complete run with more iterations, and replace it on request", async () => {
      const more = await run(["train", "small/run/config.json", "--resume", "-s", "training.iterations=7", "--json"])
      expect(more.code).toBe(0)
      expect(JSON.parse(more.stdout)).toMatchObject({ iteration: 7, metrics: { "episode/count": 6 } })
      expect(more.stderr).toMatch(/^Resuming after iteration 6 of 7.\n/)
      const anew = await run(["train", "small/run/config.json", "--overwrite", "-s", "training.iterations=1", "--json"])
      expect(anew.code).toBe(0)
      expect(
        anew.stdout
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line).iteration),
      ).toEqual([0, 1])
    })

    it("do not overwrite a run whose model they start from", async () => {
      const words = ["train", "small/config.yaml", "--overwrite", "--set", "model=small/run/model"]
      refused(await run(words), 2, /The model small\/run\/model lies in the run folder small\/run/)
      expect(await readdir(join(folder, "small/run/model"))).toContain("model.safetensors")
    })

    it("fine-tune in place or over another model on request, but never over anything else", async () => {
      const clone = ["sft", "small/config.yaml", "-s", "sft.tasks=2", "-s", "sft.epochs=1", "--out"]
      const inPlace = [...clone.slice(0, -1), "--in-place"]
      await cp(join(folder, "small/model"), join(folder, "copy"), { recursive: true })
      refused(await run([...clone, "copy"]), 2, /copy already exists.*--overwrite/)
      await cp(join(folder, "copy"), join(folder, "downloaded"), { recursive: true })
      await rm(join(folder, "downloaded/gigpo.json"))
      refused(await run([...clone, "downloaded", "--overwrite"]), 2, /downloaded\/config.json was not written by gigpo/)
      refused(
        await run([...clone, "small/config.yaml", "--overwrite"]),
        2,
        /small\/config.yaml already exists. It is not a folder/,
      )
      const before = await readFile(join(folder, "copy/model.safetensors"))
      expect(await run([...clone, "copy", "--overwrite"])).toMatchObject({ code: 0 })
      refused(
        await run([...clone, "./copy/", "--overwrite", "-s", "model=copy"]),
        2,
        /is the configured model: give --in-place/,
      )
      expect(await run([...inPlace, "-s", "model=copy"])).toMatchObject({ code: 0 })
      expect((await readFile(join(folder, "copy/model.safetensors"))).equals(before)).toBe(false)
      expect(await readdir(join(folder, "copy"))).toContain("tokenizer.json")
    })
  })

  describe("retriever", () => {
    it("serves a corpus until it is stopped", async () => {
      const corpus = join(folder, "corpus.jsonl")
      const lines = ["the river Orva runs through Tarn", "bread is baked in Tarn", "nothing of note"]
      await writeFile(corpus, lines.map((contents, id) => JSON.stringify({ id: String(id), contents })).join("\n"))
      let answer: Promise<unknown> | undefined
      const ask = async (url: string) => {
        const body = JSON.stringify({ query: "which river?", topk: 1, return_scores: true })
        return (await fetch(url, { method: "POST", body, headers: { "content-type": "application/json" } })).json()
      }
      const { code, stderr } = await run(["retriever", corpus, "--port", "0"], {
        onOutput(stdout, kill) {
          if (!stdout.includes("\n")) return
          answer ??= ask(stdout.trim()).finally(() => kill("SIGINT"))
        },
      })
      expect(await answer).toEqual({
        result: [[{ document: expect.objectContaining({ id: "0" }), score: expect.any(Number) }]],
      })
      expect(stderr).toMatch(/^3 passages of .*corpus\.jsonl; Ctrl-C stops the server\.\n$/)
      expect(code).toBe(0)
    })

    it("names an invalid line of a corpus, and an invalid port", async () => {
      await writeFile(join(folder, "broken.jsonl"), '{"id": "1", "contents": "a"}\n{"id": ')
      refused(await run(["retriever", "broken.jsonl"]), 2, /broken\.jsonl.*line 2/)
      refused(await run(["retriever", "broken.jsonl", "--port", "70000"]), 2, /integer from 0 to 65535/)
      refused(await run(["retriever", "none.jsonl"]), 2, /none\.jsonl.*\[BAD_DATA\]/)
    })
  })

  describe("play without a model", () => {
    it("needs no configuration file if an environment is given", async () => {
      const { code, stdout } = await run(["play", "sokoban", "--expert", "--set", "environment.size=[7,7]"])
      expect(code).toBe(0)
      expect(stdout).toMatch(/^--- first prompt \(user\)\n.*Sokoban(.*\n)+--- step 1\n# # # # # # #$/m)
      expect(stdout).toContain("success 1")
      refused(await run(["play", "sokoban"]), 2, /Choose a player for sokoban: --expert, --by-hand or --model/)
      refused(await run(["play", "sokoban", "--expert", "--set", "environment.boxes=0"]), 2, /boxes must be an integer/)
    })

    it("explains that the expert found no solution", async () => {
      const ends = async (task: number) =>
        (await run(["play", "points24", "--expert", "--task", String(task)])).stdout.trim().split("\n").at(-1)
      const said = await Promise.all([0, 1, 2, 3, 4, 5, 6, 7].map(ends))
      const [solved, others] = [
        said.filter((line) => line!.includes("success 1")),
        said.filter((line) => !line!.includes("success 1")),
      ]
      expect([solved.length > 0, others.length > 0]).toEqual([true, true])
      for (const line of others) expect(line).toBe("The expert found no solution of the task: 0 steps, return 0.")
    })

    it("names the line of an environment that cannot be opened, with one exit code for missing data", async () => {
      const nowhere = join(folder, "nowhere")
      for (const [options, message] of [
        [
          "name: alfworld, testSplit: nowhere",
          /^gigpo: broken.yaml, line 2: alfworld: testSplit must .*\[BAD_CONFIG\]\n$/,
        ],
        [`name: alfworld, data: ${nowhere}`, /^gigpo: broken.yaml, line 2: .*\[BAD_DATA\]\n$/],
        [`name: webshop, data: ${nowhere}`, /^gigpo: broken.yaml, line 2: .*\[BAD_DATA\]\n$/],
        [`name: search, corpus: ${nowhere}, questions: ${nowhere}`, /^gigpo: broken.yaml, line 2: .*\[BAD_DATA\]\n$/],
      ] as const) {
        await writeFile(join(folder, "broken.yaml"), `model: m\nenvironment: { ${options} }\n`)
        refused(await run(["play", "broken.yaml", "--expert"]), 2, message)
      }
    })

    it("lets the expert solve a task", async () => {
      const { code, stdout } = await run(["play", "small/config.yaml", "--expert", "--split", "train"])
      expect(code).toBe(0)
      expect(stdout).toMatch(
        /completion +<action>.*\n(.*\n)+--- last observation\n(.*\n)+The episode terminated: \d+ steps, return [\d.]+, success 1/,
      )
    })

    it("takes actions from standard input, asks again for unknown ones, and shows escape codes instead of sending them", async () => {
      const input = "up\n\nfl\x1b[2Jy\nstill\n"
      const { code, stdout } = await run(["play", "small/config.yaml", "--by-hand"], { input })
      expect(code).toBe(0)
      expect(stdout).toContain("action (up, down, left, right)?")
      expect(stdout).toContain('Sokoban has no action "fl\\x1b[2Jy"; use up')
      expect(stdout).toMatch(/Stopped: 2 steps, return -0.2.\n$/)
      expect(stdout).not.toContain("\x1b")
    })
  })
})
