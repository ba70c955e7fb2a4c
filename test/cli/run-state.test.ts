import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { acquireLock, releaseLock } from "../../src/files/lock.ts"
import { Run } from "../../src/runs/run.ts"
import { FakePolicy } from "../training/fake-policy.ts"
import { built, type GigpoOptions, gigpo, tiny, untilServed } from "./gigpo.ts"

// What commands make of a run's state, and whether what they say of it is so.

describe.skipIf(!built)("the state of a run (needs dist: npm run build:ts)", () => {
  let folder: string
  const run = async (words: readonly string[], options: Partial<GigpoOptions> = {}) =>
    await gigpo(words, { cwd: folder, ...options })
  const sets = (...all: string[]) => all.flatMap((one) => ["--set", one])
  const train = (name: string, ...flags: string[]) => ["train", "small/config.yaml", ...sets(`run=${name}`), ...flags]
  /** A command as it was printed. */
  const typed = async (line: string) => await run(line.split(" ").slice(1))
  const stopAfter = (pattern: RegExp): Partial<GigpoOptions> => ({
    onOutput: (stdout, kill) => {
      if (pattern.test(stdout)) kill("SIGINT")
    },
  })

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-state-"))
    expect(await run(["init", "sokoban", "small", ...tiny])).toMatchObject({ code: 0 })
    expect(await run(["sft", "small/config.yaml", "--in-place"])).toMatchObject({ code: 0 })
    const short = sets("training.iterations=2", "training.checkpointEvery=1")
    expect(await run(train("whole", ...short))).toMatchObject({ code: 0 })
    // One that is resumed after its end and stopped: its model is older than its newest checkpoint.
    await cp(join(folder, "whole"), join(folder, "longer"), { recursive: true })
    const longer = ["--resume", ...sets("training.iterations=60", "training.checkpointEvery=1")]
    const stopped = await run(train("longer", ...longer), stopAfter(/^iteration 4\/60/m))
    expect(stopped).toMatchObject({ code: 130 })
  })
  afterAll(async () => await rm(folder, { recursive: true, force: true }))

  const newest = async (name: string): Promise<string> => {
    const steps = (await readdir(join(folder, name, "checkpoints"))).map((step) =>
      Number(step.slice("iteration-".length)),
    )
    return join(name, "checkpoints", `iteration-${Math.max(...steps)}`)
  }

  describe("of a run continued after its end", () => {
    it("is its newest checkpoint for evaluate, play and view, which print it", async () => {
      const checkpoint = await newest("longer")
      const told = new RegExp(`longer is a run\\..*${checkpoint}; its model is that after iteration 2`)
      for (const command of [["evaluate"], ["play"], ["anchors"]] as const) {
        const by = async (model: string) => await run([...command, "small/config.yaml", "--model", model])
        const [ofRun, ofCheckpoint, ofModel] = [await by("longer"), await by(checkpoint), await by("longer/model")]
        expect(ofRun).toMatchObject({ code: 0, stderr: expect.stringMatching(told) })
        expect(ofRun.stdout).toBe(ofCheckpoint.stdout)
        expect(ofCheckpoint.stderr).toBe("")
        expect(ofModel.code).toBe(0)
      }
      const benchmark = ["--benchmark", "sokoban/6x6@1", "--out", "benchmark.jsonl"]
      const played = await run(["evaluate", "small/config.yaml", "--model", "longer", ...benchmark])
      expect(played).toMatchObject({ code: 0, stderr: expect.stringMatching(told) })
      const [header] = (await readFile(join(folder, "benchmark.jsonl"), "utf8")).split("\n")
      expect(JSON.parse(header!).model.name).toBe(checkpoint)
    })

    it("is also used by serve and chat", async () => {
      const served = await untilServed(["serve", "longer"], { cwd: folder })
      served.kill("SIGINT")
      expect((await served.ended).stderr).toContain(`checkpoint ${await newest("longer")}; its model is that after`)
      const chat = await run(["chat", "longer", "--max-tokens", "3"], { input: "Hello" })
      expect(chat.stderr).toContain(`checkpoint ${await newest("longer")}`)
    })

    it("is named in the error of commands that only open models", async () => {
      const refused = await run(train("other", ...sets("model=longer")))
      expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining(await newest("longer")) })
    })

    it("is the model if that is newest, also with manifests of other versions", async () => {
      const by = async (name: string) => (await run(["evaluate", "small/config.yaml", "--model", name])).stderr
      expect(await by("whole")).toMatch(
        /whole is a run\. Its newest state is its model after iteration 2, whole\/model\./,
      )
      // Manifests of older versions tell no iteration.
      for (const name of ["whole", "longer"]) {
        const path = join(folder, `old-${name}`)
        await cp(join(folder, name), path, { recursive: true, preserveTimestamps: true })
        const manifest = join(path, "model", "gigpo.json")
        const { iteration: _, sha256: __, ...older } = JSON.parse(await readFile(manifest, "utf8"))
        await rm(manifest)
        await rm(join(path, "model"), { recursive: true })
        await cp(join(folder, name, "model"), join(path, "model"), { recursive: true, preserveTimestamps: true })
        if (name === "whole") await writeFile(manifest, JSON.stringify(older))
        else await rm(manifest) // the time of config.json counts
      }
      expect(await by("old-whole")).toMatch(/Its newest state is its model, old-whole\/model/)
      expect(await by("old-longer")).toMatch(/Its newest state is its checkpoint .*; its model is older/)
    })
  })

  it("of a running first iteration is not reported as stopped", async () => {
    const begun = join(folder, "begun")
    await mkdir(join(begun, "checkpoints"), { recursive: true })
    await writeFile(join(begun, "metrics.jsonl"), "")
    const evaluated = async () => (await run(["evaluate", "small/config.yaml", "--model", "begun"])).stderr
    expect(await evaluated()).toMatch(/stopped before its first checkpoint/)
    const lock = await acquireLock(join(begun, "run.lock"))
    expect(await evaluated()).toMatch(/It is in progress and has not written its first checkpoint yet/)
    await releaseLock(lock)
  })

  it.each([
    [["train", "small"], /small is a folder, not a configuration file\. Give its configuration: small\/config\.yaml\./],
    [["evaluate", "whole"], /Give its configuration: whole\/config\.json/],
    [["evaluate", "whole/checkpoints"], /Give a configuration file, YAML or JSON/],
    [["serve", "small"], /small contains no model files itself\. Give one of its folders: small\/model\./],
    [["evaluate", "small/config.yaml", "--model", "small"], /Give one of its folders: small\/model\./],
    [["chat", "."], /Give one of its folders: .*whole/],
    [["train", "small/config.yaml", "--set", "run=nothing", "--resume"], /\[RUN_MISSING\]/],
    [
      ["train", "small/config.yaml", "--set", "run=nothing", "--fork", "small"],
      /nothing in .*small to fork.*\[RUN_MISSING\]/,
    ],
  ])("%j is rejected with the folder that is meant", async (words, message) => {
    expect(await run(words, { input: "Hello" })).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(message),
    })
    expect(await readdir(folder)).not.toContain("nothing")
  })

  describe("of a fork", () => {
    it("is printed: forked at first, then continued, and rejected as a fork of another", async () => {
      const fork = (from: string, iterations: number) =>
        run(train("branch", "--resume", "auto", "--fork", from, ...sets(`training.iterations=${iterations}`)))
      const first = await fork("whole", 3)
      expect(first.stdout).toMatch(/^Forked after iteration 2 of 3\.$/m)
      const again = await fork("whole", 4)
      expect(again.stdout).toMatch(/^Resuming after iteration 3 of 4\.$/m)
      expect(again.stdout).not.toContain("Forked")
      const other = await fork("longer", 5)
      expect(other).toMatchObject({
        code: 2,
        stdout: "",
        stderr: expect.stringMatching(/is a fork of .*whole.*RUN_EXISTS/),
      })
    })

    it("is checked before anything is printed", async () => {
      const refused = await run(train("branch-2", "--fork", "whole", ...sets("training.iterations=1")))
      expect(refused).toMatchObject({ code: 2, stdout: "" })
      expect(await readdir(folder)).not.toContain("branch-2")
    })
  })

  describe("without saved iterations", () => {
    const hint = (stdout: string) => /restart: (gigpo .*)$/m.exec(stdout)![1]!

    it("is restarted by the printed command, after a learning rate in the file is fixed", async () => {
      await cp(join(folder, "small", "config.yaml"), join(folder, "rate.yaml"))
      const config = await readFile(join(folder, "rate.yaml"), "utf8")
      const withRate = (rate: string) =>
        config.replace("training:", `training:\n  optimizer: { learningRate: ${rate} }`)
      expect(withRate("1")).not.toBe(config)
      await writeFile(join(folder, "rate.yaml"), withRate("1.0e+10"))
      const some = sets("run=rate", "training.iterations=2", "training.evaluation.every=0")
      const failed = await run(["train", "rate.yaml", ...some])
      expect(failed).toMatchObject({ code: 4, stderr: expect.stringContaining("NON_FINITE") })
      await writeFile(join(folder, "rate.yaml"), withRate("0.001"))
      const fixed = await typed(hint(failed.stdout))
      expect(fixed).toMatchObject({ code: 0, stderr: "" })
      expect(fixed.stdout).toMatch(/Nothing of the run in .* was saved.*learningRate was 10000000000 and is now 0.001/)
      expect(
        JSON.parse(await readFile(join(folder, "rate", "config.json"), "utf8")).training.optimizer.learningRate,
      ).toBe(0.001)
    })

    it("is restarted by the printed command, after an agent program is fixed or replaced", async () => {
      await writeFile(
        join(folder, "tasks.jsonl"),
        Array.from({ length: 40 }, (_, i) => `${JSON.stringify({ from: i % 6, to: (i * 5) % 7 })}\n`).join(""),
      )
      const training =
        "iterations: 1, groups: 2, groupSize: 2, rollout: { maxCompletionTokens: 8, maxRetries: 0 }, evaluation: { every: 0 }"
      await writeFile(
        join(folder, "gateway.yaml"),
        `model: small/model\nrun: played\nenvironment: { name: tasks, tasks: tasks.jsonl }\ntraining: { ${training} }\n`,
      )
      await writeFile(join(folder, "agent.mjs"), "process.exit(3)")
      const failed = await run(["gateway", "gateway.yaml", "--", "node", "agent.mjs"])
      expect(failed.code).not.toBe(0)
      const program = `const { OPENAI_BASE_URL: url, OPENAI_API_KEY: key, GIGPO_MODEL: model } = process.env
        const headers = { authorization: "Bearer " + key, "content-type": "application/json" }
        const body = JSON.stringify({ model, messages: [{ role: "user", content: "1" }] })
        await fetch(url + "/chat/completions", { method: "POST", headers, body })
        console.log(JSON.stringify({ reward: 1 }))`
      await writeFile(join(folder, "better.mjs"), program)
      const other = await typed(hint(failed.stdout).replace("agent.mjs", "better.mjs"))
      expect(other).toMatchObject({ code: 0 })
    })

    it("of a diverged run is forked by the printed command", async () => {
      const exploding = "training.optimizer.learningRate={ from: 0.001, to: 1.0e+9, after: 2, over: 1 }"
      const short = sets(
        "training.checkpointEvery=1",
        "training.evaluation.every=0",
        "training.iterations=8",
        exploding,
      )
      const failed = await run(train("exploded", ...short))
      expect(failed).toMatchObject({ code: 4, stderr: expect.stringContaining("NON_FINITE") })
      const [, command] = /with a lower learning rate: (gigpo .*)$/m.exec(failed.stdout)!
      expect(await typed(`${command} --set training.iterations=4`)).toMatchObject({ code: 0 })
      expect(await readdir(folder)).toContain("exploded-lower")
    })
  })

  describe("of a run started from code", () => {
    beforeAll(async () => {
      const made = await Run.open(join(folder, "coded"), { iterations: 2, groups: 4 })
      await made.log({ iteration: 1, metrics: { "episode/success": 0.5 } })
      await made.saveCheckpoint(1, new FakePolicy(), 1)
      await made.close()
    })

    it("is listed with its plan, and the errors explain what is possible", async () => {
      expect((await run(["runs", "coded"])).stdout).toMatch(/coded +stopped +1\/2/)
      for (const words of [["evaluate"], ["train"], ["sft", "--in-place"], ["anchors"], ["estimate"]] as const) {
        const [command, ...flags] = words
        const { code, stderr } = await run([command, "coded/config.json", ...flags])
        expect({ code, stderr }).toEqual({
          code: 2,
          stderr: expect.stringMatching(
            /belongs to a run started from code \(Run\.open\).*gigpo evaluate config\.yaml --model coded/,
          ),
        })
      }
      const { stderr } = await run(["episodes", "coded"])
      expect(stderr).toMatch(/No episodes were recorded in coded: the run was started from code.*recordEpisodes/)
    })
  })

  describe("in a folder without runs", () => {
    it("is reported as missing, with the fix, by every command that searches runs", async () => {
      const empty = await mkdtemp(join(folder, "empty-"))
      const told = /There are no runs in this folder or below it\..*gigpo train config\.yaml.*gigpo init sokoban demo/
      expect(await run(["runs"], { cwd: empty })).toEqual({ code: 0, stderr: "", stdout: expect.stringMatching(told) })
      expect(await run(["runs", "--json"], { cwd: empty })).toEqual({ code: 0, stderr: "", stdout: "[]\n" })
      expect(await run(["view"], { cwd: empty })).toEqual({ code: 2, stdout: "", stderr: expect.stringMatching(told) })
      const report = ["report", "--out", "x.html"]
      expect(await run(report, { cwd: empty })).toEqual({ code: 2, stdout: "", stderr: expect.stringMatching(told) })
      for (const command of ["runs", "view"]) {
        const missing = await run([command, "none"], { cwd: empty })
        expect(missing).toEqual({ code: 2, stdout: "", stderr: expect.stringMatching(/none.*\[BAD_ARGUMENT\]/s) })
      }
      await mkdir(join(empty, "runs"))
      expect((await run(["runs"], { cwd: empty })).stdout).toMatch(/There are no runs in runs\./)
    })

    it("is found below this folder if there is no folder runs", async () => {
      expect((await run(["runs"])).stdout).toMatch(/^whole +done +2\/2/m)
    })
  })

  it("has a first configuration that documents the base of its paths", async () => {
    const guess = await readFile(new URL("guess.mjs", import.meta.url), "utf8")
    const [, world] = /^export default \(\{ most \}\) => \((.*)\)$/ms.exec(guess.trim())!
    await writeFile(join(folder, "world.mjs"), `const most = 9\nexport default ${world}\n`)
    const made = await run(["init", "./world.mjs", "own", ...tiny])
    expect(made).toMatchObject({ code: 0 })
    const config = await readFile(join(folder, "own", "config.yaml"), "utf8")
    expect(config).toMatch(/started; that of the environment's module to this file\./)
    expect(config).toContain("../world.mjs")
    expect(await readFile(join(folder, "small", "config.yaml"), "utf8")).not.toContain("environment's module")
  })
})
