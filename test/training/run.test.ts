import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync } from "node:fs"
import {
  appendFile,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  symlink,
  truncate,
  writeFile,
} from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { removeRun } from "../../src/training/replaced-run.ts"
import { Run, type RunOptions } from "../../src/training/run.ts"
import { checkRunFolder } from "../../src/training/run-folder.ts"
import { recordedIterations } from "../../src/view/record/folder.ts"
import { readGroup } from "../../src/view/record/read.ts"
import { EventFile } from "../../src/view/sinks/event-file.ts"
import { plainGroups, record } from "../view/record/groups.ts"
import { FakePolicy } from "./fake-policy.ts"

let folder: string
let directory: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-run-"))
  directory = join(folder, "runs", "one")
})
afterEach(async () => await rm(folder, { recursive: true }))

const config = {
  model: "m",
  seed: 3,
  training: { groups: 4, iterations: 10, loss: { clipDual: Number.POSITIVE_INFINITY } },
}

/** A run whose iterations up to `iteration` are logged, with checkpoints of some of them. */
async function putRun(iteration: number, checkpoints: readonly number[]): Promise<void> {
  const run = await Run.open(directory, config)
  await run.begin()
  const policy = new FakePolicy()
  for (let i = 1; i <= iteration; i++) {
    await run.log({ iteration: i, metrics: { "loss/policy": i / 10 } })
    policy.weights = Float32Array.of(i, i, i)
    policy.moments = Float32Array.of(-i, -i, -i)
    policy.steps = 2 * i
    if (checkpoints.includes(i)) await run.saveCheckpoint(i, policy, 2)
  }
  await run.close()
}

/** Every file below a folder, with what it holds. */
async function snapshot(root: string): Promise<Record<string, string>> {
  const entries = await readdir(root, { withFileTypes: true, recursive: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  return Object.fromEntries(await Promise.all(files.map(async (file) => [file, await readFile(file, "latin1")])))
}

async function refused(options: RunOptions, code: string, message: RegExp, now: object = config): Promise<void> {
  const before = await snapshot(folder)
  await expect(Run.open(directory, now, options)).rejects.toMatchObject({
    code,
    message: expect.stringMatching(message),
  })
  expect(await snapshot(folder)).toEqual(before)
}

async function loggedIterations(): Promise<number[]> {
  const text = await readFile(join(directory, "metrics.jsonl"), "utf8")
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line).iteration)
}

describe("a new run", () => {
  it("has the configuration, an empty log and a lock; the lock goes when it is closed", async () => {
    const run = await Run.open(directory, config)
    expect(await readdir(folder)).toEqual([])
    await run.begin()
    expect((await readdir(directory)).sort()).toEqual(["checkpoints", "config.json", "metrics.jsonl", "run.lock"])
    expect(run).toMatchObject({ directory, iteration: 0, checkpoint: undefined })
    const { gigpo, ...kept } = JSON.parse(await readFile(join(directory, "config.json"), "utf8"))
    expect(gigpo).toMatch(/^\d+\.\d+\.\d+/)
    expect(kept).toEqual(config)
    await run.close()
    await run.close()
    expect((await readdir(directory)).sort()).toEqual(["checkpoints", "config.json", "metrics.jsonl"])
    expect(await readdir(join(folder, "runs"))).toEqual(["one"])
  })

  it("may use an empty folder", async () => {
    await mkdir(directory, { recursive: true })
    const run = await Run.open(directory, config)
    await run.begin()
    await run.close()
    expect(await readdir(directory)).toContain("config.json")
  })

  it("follows a link, begun, resumed and replaced", async () => {
    const target = join(folder, "disk", "one")
    await mkdir(target, { recursive: true })
    await mkdir(join(folder, "runs"))
    await symlink(target, directory)
    await putRun(4, [2, 4])
    expect((await readdir(target)).sort()).toEqual(["checkpoints", "config.json", "metrics.jsonl"])
    const resumed = await Run.open(directory, config, { resume: true })
    expect(resumed.iteration).toBe(4)
    await resumed.log({ iteration: 5, metrics: {} })
    await resumed.close()
    const replaced = await Run.open(directory, config, { overwrite: true })
    await replaced.saveCheckpoint(1, new FakePolicy(), 2)
    await replaced.close()
    expect((await lstat(directory)).isSymbolicLink()).toBe(true)
    expect(await readdir(join(target, "checkpoints"))).toEqual(["step-1"])
  })

  it("is refused where a run is, with both ways out, and changes nothing", async () => {
    await putRun(2, [2])
    await refused({}, "RUN_EXISTS", /--resume.*--overwrite/)
  })

  it("is refused where anything else is, even to overwrite it", async () => {
    await mkdir(directory, { recursive: true })
    await writeFile(join(directory, "config.json"), '{"model_type":"qwen2"}')
    await writeFile(join(directory, "metrics.jsonl"), "")
    for (const options of [{}, { overwrite: true }, { resume: true }])
      await refused(options, "RUN_EXISTS", /is there but is no run folder/)
    await rm(directory, { recursive: true })
    await writeFile(directory, "a file")
    await refused({ overwrite: true }, "RUN_EXISTS", /is no run folder/)
  })

  it("restores nothing", async () => {
    const run = await Run.open(directory, config)
    const policy = new FakePolicy()
    await run.restore(policy)
    expect([policy.weights, policy.steps]).toEqual([new FakePolicy().weights, 0])
    await run.close()
  })

  it("writes the final model whole, over an earlier one", async () => {
    const run = await Run.open(directory, config)
    const policy = new FakePolicy()
    for (const value of [1, 2]) {
      policy.weights = Float32Array.of(value)
      expect(await run.saveModel(policy)).toBe(join(directory, "model"))
    }
    expect(new Float32Array((await readFile(join(directory, "model", "weights.bin"))).slice().buffer)).toEqual(
      Float32Array.of(2),
    )
    expect((await readdir(directory)).sort()).toEqual([
      "checkpoints",
      "config.json",
      "metrics.jsonl",
      "model",
      "run.lock",
    ])
    await run.close()
  })

  it("takes no more after it was closed", async () => {
    const run = await Run.open(directory, config)
    await run.close()
    await expect(run.log({ iteration: 1, metrics: {} })).rejects.toMatchObject({ code: "DISPOSED" })
    await expect(run.saveCheckpoint(1, new FakePolicy(), 2)).rejects.toMatchObject({ code: "DISPOSED" })
  })
})

describe("a run that is overwritten", () => {
  const other = { ...config, seed: 4 }
  const checkpoints = () => join(directory, "checkpoints")
  /** Files of somebody else, in every folder of the run. */
  async function putForeign(): Promise<Record<string, string>> {
    const places = ["", "checkpoints", "checkpoints/step-2", "model", "mine"].map((name) => join(directory, name))
    for (const place of places) {
      await mkdir(place, { recursive: true })
      await writeFile(join(place, "notes.txt"), "mine")
    }
    return Object.fromEntries(places.map((place) => [join(place, "notes.txt"), "mine"]))
  }
  async function putOld(): Promise<void> {
    await putRun(2, [1, 2])
    const run = await Run.open(directory, config, { resume: true })
    await run.saveModel(new FakePolicy())
    await run.close()
  }

  it("is replaced as a whole once the new one has a checkpoint, but for what others put there", async () => {
    await putOld()
    const foreign = await putForeign()
    const before = await snapshot(folder)
    const refusedLater = await Run.open(directory, other, { overwrite: true })
    await refusedLater.close()
    expect(await snapshot(folder)).toEqual(before)
    const run = await Run.open(directory, other, { overwrite: true })
    await run.begin()
    expect(await loggedIterations()).toEqual([])
    expect(run.replaces).toBe(true)
    await run.saveCheckpoint(1, new FakePolicy(), 2)
    expect(run.replaces).toBe(false)
    await run.close()
    expect((await readdir(directory)).sort()).toEqual([
      "checkpoints",
      "config.json",
      "metrics.jsonl",
      "mine",
      "model",
      "notes.txt",
    ])
    expect((await readdir(checkpoints())).sort()).toEqual(["notes.txt", "step-1", "step-2"])
    expect(await readdir(join(checkpoints(), "step-2"))).toEqual(["notes.txt"])
    expect(await snapshot(folder)).toMatchObject(foreign)
    expect(JSON.parse(await readFile(join(directory, "config.json"), "utf8")).seed).toBe(4)
    expect(await readdir(join(folder, "runs"))).toEqual(["one"])
  })

  it("comes back where the new one ends before its first checkpoint", async () => {
    await putOld()
    await putForeign()
    const before = await snapshot(folder)
    const run = await Run.open(directory, other, { overwrite: true })
    for (const iteration of [0, 1]) await run.log({ iteration, metrics: {} })
    expect(await snapshot(folder)).not.toEqual(before)
    await run.close()
    expect(await snapshot(folder)).toEqual(before)
    expect(await readdir(directory)).toEqual([
      "checkpoints",
      "config.json",
      "metrics.jsonl",
      "mine",
      "model",
      "notes.txt",
    ])
  })

  it("goes where the new one has a model", async () => {
    await putOld()
    const run = await Run.open(directory, other, { overwrite: true })
    await run.saveModel(new FakePolicy())
    await run.close()
    expect(JSON.parse(await readFile(join(directory, "config.json"), "utf8")).seed).toBe(4)
    expect(await readdir(checkpoints())).toEqual([])
  })

  it("comes back where a process that was killed left it aside, which is told", async () => {
    await putOld()
    const before = await snapshot(folder)
    const killed = await Run.open(directory, other, { overwrite: true })
    await killed.log({ iteration: 1, metrics: {} })
    await rm(join(directory, "run.lock"))
    const warnings: string[] = []
    const run = await Run.open(directory, config, { resume: true, onWarning: (text) => warnings.push(text) })
    expect(run.iteration).toBe(2)
    expect(warnings).toEqual([expect.stringMatching(/is the one that was there before another began to replace it/)])
    await run.close()
    expect(await snapshot(folder)).toEqual(before)
    await killed.close()
  })

  it("sets the episodes and event files of the one that is there aside, and gets its own back", async () => {
    await putOld()
    await record(directory, [
      [1, plainGroups(1)],
      [2, plainGroups(1)],
    ])
    const notes = join(directory, "episodes", "notes.txt")
    await writeFile(notes, "mine")
    const events = join(directory, "tensorboard")
    await (await EventFile.create(events, [])).close()
    const before = await snapshot(folder)
    const short = await Run.open(directory, other, { overwrite: true })
    await short.begin()
    expect(await recordedIterations(directory)).toEqual([])
    await expect(readdir(events)).rejects.toMatchObject({ code: "ENOENT" })
    await record(directory, [[1, plainGroups(2, "anew")]])
    await short.close()
    expect(await snapshot(folder)).toEqual(before)

    const run = await Run.open(directory, other, { overwrite: true })
    await run.begin()
    await record(directory, [[1, plainGroups(2, "anew")]])
    await run.saveCheckpoint(1, new FakePolicy(), 2)
    await run.close()
    expect(await recordedIterations(directory)).toEqual([1])
    await expect(readdir(events)).rejects.toMatchObject({ code: "ENOENT" })
    expect((await readGroup(directory, 1, 1))!.episodes[0]!.steps[0]!.action).toBe("anew")
    expect(await readFile(notes, "utf8")).toBe("mine")
    await removeRun(directory)
    expect(await snapshot(join(directory, "episodes"))).toEqual({ [notes]: "mine" })
  })

  it("keeps a model that gigpo 0.1 wrote there, under another name", async () => {
    await putOld()
    const model = join(directory, "model")
    await rm(join(model, "gigpo.json"))
    for (const name of ["model.safetensors", "tokenizer.json"]) await writeFile(join(model, name), "old")
    const run = await Run.open(directory, config, { resume: true })
    await run.check({})
    await run.saveModel(new FakePolicy())
    await run.close()
    const aside = (await readdir(directory)).find((name) => name.startsWith("model-"))!
    expect(await readFile(join(directory, aside, "tokenizer.json"), "utf8")).toBe("old")
    expect(await readdir(model)).toContain("gigpo.json")
  })

  it("stays as it was when the new one cannot be made", async () => {
    await putRun(2, [2])
    const broken = {
      toJSON() {
        throw new Error("no configuration")
      },
      get model(): string {
        throw new Error("no configuration")
      },
    }
    const before = await snapshot(folder)
    await expect(Run.open(directory, broken, { overwrite: true })).rejects.toThrow("no configuration")
    expect(await snapshot(folder)).toEqual(before)
  })

  it("is refused while another process works in it, as is resuming it", async () => {
    await putRun(2, [2])
    const run = await Run.open(directory, config, { resume: true })
    for (const options of [{ overwrite: true }, { resume: true }])
      await refused(options, "RUN_LOCKED", /works in this run folder/)
    await run.close()
  })

  it("cannot be resumed at once", async () => {
    await putRun(2, [2])
    await refused({ overwrite: true, resume: true }, "BAD_ARGUMENT", /choose one/)
  })
})

describe("a run that is forked", () => {
  it("begins with the state and the log of another, which stays as it is", async () => {
    await putRun(7, [2, 4, 6])
    const before = await snapshot(directory)
    const branch = join(folder, "runs", "branch")
    for (const [fork, iteration] of [
      [directory, 6],
      [join(directory, "checkpoints", "step-4"), 4],
    ] as const) {
      const run = await Run.open(branch, { ...config, seed: 9 }, { fork, overwrite: iteration === 4 })
      expect({ iteration: run.iteration, saved: run.saved }).toEqual({ iteration, saved: false })
      await run.begin()
      const policy = new FakePolicy()
      await run.restore(policy)
      expect(policy.weights).toEqual(Float32Array.of(iteration, iteration, iteration))
      await run.log({ iteration: iteration + 1, metrics: {} })
      await run.saveCheckpoint(iteration + 1, policy, 2)
      expect(run.saved).toBe(true)
      await run.close()
      const lines = (await readFile(join(branch, "metrics.jsonl"), "utf8")).trim().split("\n")
      expect(lines).toHaveLength(iteration + 1)
    }
    expect(await snapshot(directory)).toEqual(before)
  })

  it("begins with the other's state again where it was stopped before its first checkpoint", async () => {
    await putRun(4, [2, 4])
    const branch = join(folder, "branch")
    const first = await Run.open(branch, config, { fork: join(directory, "checkpoints", "step-2") })
    await first.log({ iteration: 3, metrics: {} })
    await first.close()
    const again = await Run.open(branch, config, { resume: true })
    expect(again).toMatchObject({ iteration: 2, saved: false })
    const policy = new FakePolicy()
    await again.restore(policy)
    expect(policy.steps).toBe(4)
    await again.begin()
    const lines = (await readFile(join(branch, "metrics.jsonl"), "utf8")).trim().split("\n")
    expect(lines.map((line) => JSON.parse(line).iteration)).toEqual([1, 2])
    await again.close()
    await rm(join(directory, "checkpoints", "step-2"), { recursive: true })
    await expect(Run.open(branch, config, { resume: true })).rejects.toMatchObject({ code: "RUN_CORRUPT" })
  })

  it("is refused where there is nothing to fork, into itself, and together with resuming", async () => {
    await putRun(2, [])
    const branch = join(folder, "runs", "branch")
    await expect(Run.open(branch, config, { fork: directory })).rejects.toMatchObject({ code: "RUN_CORRUPT" })
    await expect(Run.open(branch, config, { fork: folder })).rejects.toMatchObject({ code: "RUN_CORRUPT" })
    await refused({ fork: join(directory, "checkpoints", "step-2"), overwrite: true }, "BAD_ARGUMENT", /another folder/)
    await refused({ fork: branch, resume: true }, "BAD_ARGUMENT", /begins a run of its own/)
    const link = join(folder, "link")
    await symlink(directory, link)
    await refused({ fork: join(link, "checkpoints"), overwrite: true }, "BAD_ARGUMENT", /another folder/)
  })
})

describe("a run that is resumed", () => {
  it("gives back policy, optimizer and log as they were at the checkpoint", async () => {
    await putRun(7, [2, 4, 6])
    const run = await Run.open(directory, config, { resume: true })
    expect(run.iteration).toBe(6)
    expect(run.checkpoint).toEqual({
      directory: join(directory, "checkpoints", "step-6"),
      iteration: 6,
      handle: { steps: 12 },
      memory: {},
    })
    const policy = new FakePolicy()
    await run.restore(policy)
    expect(policy).toMatchObject({ weights: Float32Array.of(6, 6, 6), moments: Float32Array.of(-6, -6, -6), steps: 12 })
    await run.begin()
    expect(await loggedIterations()).toEqual([1, 2, 3, 4, 5, 6])
    await run.log({ iteration: 7, metrics: {} })
    await run.close()
    expect(await loggedIterations()).toEqual([1, 2, 3, 4, 5, 6, 7])
  })

  it("replaces the last line by a whole one, longer or shorter, and logs on after it", async () => {
    await putRun(6, [6])
    const run = await Run.open(directory, config, { resume: true })
    const amended = { iteration: 6, metrics: { "loss/policy": 0.6, "episode/return": 1 } }
    await run.amend(amended)
    await run.log({ iteration: 7, metrics: {} })
    await run.amend({ iteration: 7, metrics: { "a/b": 1 } })
    await run.amend({ iteration: 7, metrics: {} })
    await run.log({ iteration: 8, metrics: {} })
    const reports = await run.reports()
    expect(reports.map(({ iteration }) => iteration)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
    expect(reports.slice(5)).toEqual([amended, { iteration: 7, metrics: {} }, { iteration: 8, metrics: {} }])
    await run.close()
    expect((await readdir(directory)).sort()).toEqual(["checkpoints", "config.json", "metrics.jsonl"])
  })

  it.each(['{"iteration":7,"metr', '{"iteration":7}', "\0\0\0"])("drops the unfinished line %j", async (torn) => {
    await putRun(6, [6])
    await appendFile(join(directory, "metrics.jsonl"), torn)
    const run = await Run.open(directory, config, { resume: true })
    await run.log({ iteration: 7, metrics: {} })
    await run.close()
    expect(await loggedIterations()).toEqual([1, 2, 3, 4, 5, 6, 7])
  })

  it("falls back to the checkpoint before a damaged one, with a warning, and writes that one again", async () => {
    await putRun(7, [4, 6])
    await truncate(join(directory, "checkpoints", "step-6", "weights.bin"), 10)
    const warnings: string[] = []
    const run = await Run.open(directory, config, { resume: true, onWarning: (message) => warnings.push(message) })
    expect(run.iteration).toBe(4)
    expect(warnings).toEqual([expect.stringMatching(/step-6 is damaged/)])
    await run.begin()
    expect(await loggedIterations()).toEqual([1, 2, 3, 4])
    await run.saveCheckpoint(6, new FakePolicy(), 2)
    expect(run.iteration).toBe(6)
    await run.close()
  })

  it("is refused without a whole checkpoint, without a run, and with a damaged configuration", async () => {
    await refused({ resume: true }, "RUN_CORRUPT", /no run in .* to resume/)
    await putRun(3, [3])
    await truncate(join(directory, "checkpoints", "step-3", "weights.bin"), 1)
    await refused({ resume: true }, "RUN_CORRUPT", /no whole checkpoint.*--overwrite/)
  })

  it("begins again where it was stopped before its first checkpoint", async () => {
    await putRun(3, [])
    await refused({ resume: true }, "BAD_CONFIG", /seed was 3 and is now 4/, { ...config, seed: 4 })
    const run = await Run.open(directory, config, { resume: true })
    expect(run).toMatchObject({ iteration: 0, checkpoint: undefined, saved: false })
    await run.begin()
    expect(await loggedIterations()).toEqual([])
    await run.restore(new FakePolicy()) // there is nothing to restore
    await run.close()
  })

  it("begins where there is none, if it is to start or to go on", async () => {
    const auto = { resume: "auto" } as const
    for (const iteration of [0, 1, 2]) {
      const run = await Run.open(directory, config, auto)
      expect(run.iteration).toBe(iteration)
      await run.log({ iteration: iteration + 1, metrics: {} })
      await run.saveCheckpoint(iteration + 1, new FakePolicy(), 2)
      await run.close()
    }
    expect(await loggedIterations()).toEqual([1, 2, 3])
    const fork = await Run.open(join(folder, "fork"), config, { ...auto, fork: directory })
    expect(fork.iteration).toBe(3)
    await fork.close()
  })

  it("tells before its first step that its disk has too little room, for the first checkpoints and the model", async () => {
    const { store } = new FakePolicy()
    const bytes = { model: 1, checkpoint: 1e18 }
    const run = await Run.open(directory, config)
    await run.check({ store: { ...store, bytes: { model: 1, checkpoint: 1 } } })
    await expect(run.check({ store: { ...store, bytes } })).rejects.toMatchObject({
      code: "IO",
      message: expect.stringMatching(/is going to take about .* but the disk has/),
    })
    await run.close()
    expect(await readdir(folder)).toEqual([])
  })

  it("tells before its first step that files of others are in the way of its model", async () => {
    await putRun(2, [2])
    await mkdir(join(directory, "model"))
    await writeFile(join(directory, "model", "config.json"), "mine")
    const run = await Run.open(directory, config, { resume: true })
    await expect(run.check({})).rejects.toMatchObject({
      code: "FILE_EXISTS",
      message: /config.json was not written by gigpo/,
    })
    await run.close()
  })

  it("is refused with another configuration, which is named", async () => {
    await putRun(2, [2])
    const other = { model: "n", seed: 3, training: { ...config.training, groups: 5, loss: {} } }
    await refused(
      { resume: true },
      "BAD_CONFIG",
      /model was "m" and is now "n"; training.groups was 4 and is now 5; training.loss.clipDual was .* and is now not set/,
      other,
    )
  })

  it("may change how long it goes on and what is kept, and remembers that", async () => {
    await putRun(2, [2])
    const more = {
      ...config,
      training: { ...config.training, iterations: 20, keepCheckpoints: 9, evaluation: { every: 5 } },
    }
    const run = await Run.open(directory, more, { resume: true })
    await run.begin()
    await run.close()
    expect(JSON.parse(await readFile(join(directory, "config.json"), "utf8")).training.iterations).toBe(20)
    await refused({ resume: true, mayChange: [] }, "BAD_CONFIG", /training.iterations was 20 and is now 10/)
    await (await Run.open(directory, { ...more, threads: 3 }, { resume: true, mayChange: ["threads"] })).close()
  })

  it("can be asked about beforehand", async () => {
    expect(await checkRunFolder(directory, {})).toBe("nothing")
    await putRun(2, [2])
    expect(await checkRunFolder(directory, { resume: true })).toBe("run")
    await expect(checkRunFolder(directory, {})).rejects.toMatchObject({ code: "RUN_EXISTS" })
  })
})

const built = new URL("../../dist/training/run.js", import.meta.url)

describe.skipIf(!existsSync(built))("a run whose process is killed (needs dist: npm run build:ts)", () => {
  it("can be resumed wherever the kill fell, and never loses a checkpoint that was told of", async () => {
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
      expect(await loggedIterations()).toEqual(Array.from({ length: run.iteration }, (_, i) => i + 1))
      before = run.iteration
      await run.close()
    }
  })
})

/** Goes on for ever: logs, writes a checkpoint, says so. */
function childSource(): string {
  const from = (path: string) => JSON.stringify(pathToFileURL(join(import.meta.dirname, "../../dist", path)).href)
  return `
    import { writeFile } from "node:fs/promises"
    import { join } from "node:path"
    import { Run } from ${from("training/run.js")}
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
