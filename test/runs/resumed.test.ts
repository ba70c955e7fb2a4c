import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync } from "node:fs"
import { appendFile, mkdir, readdir, readFile, rm, truncate, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { checkRunFolder } from "../../src/runs/folder.ts"
import { Run } from "../../src/runs/run.ts"
import { FakePolicy } from "../training/fake-policy.ts"
import { config, loggedIterations, placeForRun, putRun, refused } from "./run-place.ts"

let folder: string
let directory: string
beforeEach(async () => {
  ;({ folder, directory } = await placeForRun())
})
afterEach(async () => await rm(folder, { recursive: true }))

describe("a run that is resumed", () => {
  it("restores policy, optimizer and log of the checkpoint", async () => {
    await putRun(directory, 7, [2, 4, 6])
    const run = await Run.open(directory, config, { resume: true })
    expect(run.iteration).toBe(6)
    expect(run.checkpoint).toEqual({
      directory: join(directory, "checkpoints", "iteration-6"),
      iteration: 6,
      handle: { steps: 12 },
      memory: {},
    })
    const policy = new FakePolicy()
    await run.restore(policy)
    expect(policy).toMatchObject({ weights: Float32Array.of(6, 6, 6), moments: Float32Array.of(-6, -6, -6), steps: 12 })
    await run.begin()
    expect(await loggedIterations(directory)).toEqual([1, 2, 3, 4, 5, 6])
    await run.log({ iteration: 7, metrics: {} })
    await run.close()
    expect(await loggedIterations(directory)).toEqual([1, 2, 3, 4, 5, 6, 7])
  })

  it("replaces the last line by a whole one, longer or shorter, and logs on after it", async () => {
    await putRun(directory, 6, [6])
    const run = await Run.open(directory, config, { resume: true })
    const amended = { iteration: 6, metrics: { "loss/policy": 0.6, "episode/return": 1 } }
    await run.replaceLast(amended)
    await run.log({ iteration: 7, metrics: {} })
    await run.replaceLast({ iteration: 7, metrics: { "a/b": 1 } })
    await run.replaceLast({ iteration: 7, metrics: {} })
    await run.log({ iteration: 8, metrics: {} })
    const reports = await run.reports()
    expect(reports.map(({ iteration }) => iteration)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
    expect(reports.slice(5)).toEqual([amended, { iteration: 7, metrics: {} }, { iteration: 8, metrics: {} }])
    await run.close()
    expect((await readdir(directory)).sort()).toEqual(["checkpoints", "config.json", "metrics.jsonl"])
  })

  it.each(['{"iteration":7,"metr', '{"iteration":7}', "\0\0\0"])("drops the unfinished line %j", async (torn) => {
    await putRun(directory, 6, [6])
    await appendFile(join(directory, "metrics.jsonl"), torn)
    const run = await Run.open(directory, config, { resume: true })
    await run.log({ iteration: 7, metrics: {} })
    await run.close()
    expect(await loggedIterations(directory)).toEqual([1, 2, 3, 4, 5, 6, 7])
  })

  it("falls back to the checkpoint before a damaged one, with a warning, and writes that one again", async () => {
    await putRun(directory, 7, [4, 6])
    await truncate(join(directory, "checkpoints", "iteration-6", "weights.bin"), 10)
    const warnings: string[] = []
    const run = await Run.open(directory, config, { resume: true, onWarning: (message) => warnings.push(message) })
    expect(run.iteration).toBe(4)
    expect(warnings).toEqual([expect.stringMatching(/iteration-6 is damaged/)])
    await run.begin()
    expect(await loggedIterations(directory)).toEqual([1, 2, 3, 4])
    await run.saveCheckpoint(6, new FakePolicy(), 2)
    expect(run.iteration).toBe(6)
    await run.close()
  })

  it("is rejected without a whole checkpoint, without a run, and with a damaged configuration", async () => {
    await refused(directory, { resume: true }, "RUN_MISSING", /no run in .* to resume/)
    await putRun(directory, 3, [3])
    await truncate(join(directory, "checkpoints", "iteration-3", "weights.bin"), 1)
    await refused(directory, { resume: true }, "RUN_CORRUPT", /no intact checkpoint.*--overwrite/)
  })

  it("restarts if it was stopped before its first checkpoint", async () => {
    await putRun(directory, 3, [])
    const run = await Run.open(directory, config, { resume: true })
    expect(run).toMatchObject({ iteration: 0, checkpoint: undefined, saved: false })
    await run.begin()
    expect(await loggedIterations(directory)).toEqual([])
    await run.restore(new FakePolicy()) // there is nothing to restore
    await run.close()
  })

  it("restarts with another configuration if nothing was saved, with a message", async () => {
    await putRun(directory, 3, [])
    const warnings: string[] = []
    const onWarning = (text: string) => warnings.push(text)
    const other = { ...config, seed: 4 }
    const run = await Run.open(directory, other, { resume: true, onWarning })
    await run.log({ iteration: 0, metrics: {} })
    await run.close()
    expect(warnings).toEqual([expect.stringMatching(/Nothing of the run in .* was saved.*seed was 3 and is now 4/)])
    expect(await loggedIterations(directory)).toEqual([0])
    const again = await Run.open(directory, { ...other, seed: 5 }, { resume: true, onWarning })
    await again.begin()
    expect(again.config.seed).toBe(5)
    await again.saveCheckpoint(1, new FakePolicy(), 1)
    await again.close()
    expect(await loggedIterations(directory)).toEqual([])
    await refused(directory, { resume: true }, "BAD_CONFIG", /seed was 5 and is now 6.*--fork/, { ...config, seed: 6 })
  })

  it("starts if there is no run and auto is set", async () => {
    const auto = { resume: "auto" } as const
    for (const iteration of [0, 1, 2]) {
      const run = await Run.open(directory, config, auto)
      expect(run.iteration).toBe(iteration)
      await run.log({ iteration: iteration + 1, metrics: {} })
      await run.saveCheckpoint(iteration + 1, new FakePolicy(), 2)
      await run.close()
    }
    expect(await loggedIterations(directory)).toEqual([1, 2, 3])
    const fork = await Run.open(join(folder, "fork"), config, { ...auto, fork: directory })
    expect(fork.iteration).toBe(3)
    await fork.close()
  })

  it("reports before its first step that the disk is too small for the first checkpoints and the model", async () => {
    const { store } = new FakePolicy()
    const bytes = { model: 1, checkpoint: 1e18 }
    const run = await Run.open(directory, config)
    await run.check({ store: { ...store, bytes: { model: 1, checkpoint: 1 } } })
    await expect(run.check({ store: { ...store, bytes } })).rejects.toMatchObject({
      code: "IO",
      message: expect.stringMatching(/will need about .* but the disk has/),
    })
    await run.close()
    expect(await readdir(folder)).toEqual([])
  })

  it("reports before its first step that foreign files prevent saving its model", async () => {
    await putRun(directory, 2, [2])
    await mkdir(join(directory, "model"))
    await writeFile(join(directory, "model", "config.json"), "mine")
    const run = await Run.open(directory, config, { resume: true })
    await expect(run.check({})).rejects.toMatchObject({
      code: "FILE_EXISTS",
      message: /config.json was not written by gigpo/,
    })
    await run.close()
  })

  it("is rejected with another configuration, which is named", async () => {
    await putRun(directory, 2, [2])
    const other = { model: "n", seed: 3, training: { ...config.training, groups: 5, loss: {} } }
    await refused(
      directory,
      { resume: true },
      "BAD_CONFIG",
      /model was "m" and is now "n"; training.groups was 4 and is now 5; training.loss.clipDual was .* and is now not set/,
      other,
    )
  })

  it("may change its length and the kept checkpoints, and stores the change", async () => {
    await putRun(directory, 2, [2])
    const more = {
      ...config,
      training: { ...config.training, iterations: 20, keepCheckpoints: 9, evaluation: { every: 5 } },
    }
    const run = await Run.open(directory, more, { resume: true })
    await run.begin()
    await run.close()
    expect(JSON.parse(await readFile(join(directory, "config.json"), "utf8")).training.iterations).toBe(20)
    await refused(directory, { resume: true, changeable: [] }, "BAD_CONFIG", /training.iterations was 20 and is now 10/)
    await (await Run.open(directory, { ...more, threads: 3 }, { resume: true, changeable: ["threads"] })).close()
  })

  it("can be inspected beforehand", async () => {
    expect(await checkRunFolder(directory, {})).toBe("nothing")
    await putRun(directory, 2, [2])
    expect(await checkRunFolder(directory, { resume: true })).toBe("run")
    await expect(checkRunFolder(directory, {})).rejects.toMatchObject({ code: "RUN_EXISTS" })
  })
})

const built = new URL("../../modules/runs/run.js", import.meta.url)

describe.skipIf(!existsSync(built))("a run whose process is killed (needs modules/: npm run build:ts)", () => {
  it("can be resumed after a kill at any time, and never loses a reported checkpoint", async () => {
    const child = join(folder, "child.mjs")
    await writeFile(child, childSource())
    let before = 0
    for (let kill = 0; kill < 12; kill++) {
      const running = spawn(process.execPath, [child, directory, kill === 0 ? "" : "resume"], {
        stdio: ["ignore", "pipe", "inherit"],
      })
      let told = ""
      running.stdout.on("data", (data) => {
        told += data
        // After the third checkpoint, some steps of the event loop later each time.
        if (told.split("\n").length > 3) setTimeout(() => running.kill("SIGKILL"), kill)
      })
      await once(running, "close")
      const last = Number(told.trim().split("\n").at(-1))
      expect(last).toBeGreaterThan(before)
      const run = await Run.open(directory, config, { resume: true })
      expect(run.iteration).toBeGreaterThanOrEqual(last)
      const policy = new FakePolicy()
      await run.begin()
      await run.restore(policy)
      expect(policy.steps).toBe(run.iteration)
      expect(policy.weights).toEqual(new Float32Array(10_000).fill(run.iteration))
      expect(await loggedIterations(directory)).toEqual(Array.from({ length: run.iteration }, (_, i) => i + 1))
      before = run.iteration
      await run.close()
    }
  })
})

/** Goes on for ever: logs, writes a checkpoint, says so. */
function childSource(): string {
  const from = (path: string) => JSON.stringify(pathToFileURL(join(import.meta.dirname, "../../modules", path)).href)
  return `
    import { writeFile } from "node:fs/promises"
    import { join } from "node:path"
    import { Run } from ${from("runs/run.js")}
    const [directory, resume] = process.argv.slice(2)
    const config = ${JSON.stringify(config).replace('"clipDual":null', '"clipDual":Infinity')}
    const run = await Run.open(directory, config, { resume: resume === "resume" })
    for (let iteration = run.iteration + 1; ; iteration++) {
      const bytes = new Uint8Array(new Float32Array(10_000).fill(iteration).buffer)
      const store = {
        async checkpoint(folder) {
          await writeFile(join(folder, "weights.bin"), bytes)
          await writeFile(join(folder, "moments.bin"), bytes)
          return { steps: iteration }
        },
      }
      await run.log({ iteration, metrics: {} })
      await run.saveCheckpoint(iteration, { store }, 2)
      process.stdout.write(iteration + "\\n")
    }`
}
