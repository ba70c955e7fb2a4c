import { execFile } from "node:child_process"
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import type { IterationReport } from "../../../src/runs/report.ts"
import { Run } from "../../../src/runs/run.ts"
import { train } from "../../../src/training/train.ts"
import { scalarsOf } from "../../../src/view/data/scalars.ts"
import { crc32c } from "../../../src/view/sinks/crc32c.ts"
import { tensorBoard } from "../../../src/view/sinks/tensorboard.ts"
import { tableSetup } from "../../training/table-setup.ts"
import { madeFolder, reportsOf } from "../run-folder.ts"
import { parseEvents, type ReadEvent, readEventFolder } from "./event-files.ts"

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-tensorboard-"))
})
afterEach(async () => await rm(folder, { recursive: true }))

const single = (report: IterationReport): ReadEvent => ({
  time: Date.parse(report.time!) / 1000,
  step: report.iteration,
  values: Object.fromEntries(Object.entries(scalarsOf(report)).map(([tag, value]) => [tag, Math.fround(value)])),
})

async function observe(directory: string, reports: readonly IterationReport[]): Promise<void> {
  const observer = tensorBoard({ directory })
  await observer.start!({ iteration: 0, iterations: reports.length })
  for (const report of reports) await observer.report!(report)
  await observer.end!({ iteration: reports.length })
}

const logged = async (run: string): Promise<IterationReport[]> =>
  (await readFile(join(run, "metrics.jsonl"), "utf8"))
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))

describe("CRC-32C", () => {
  it.each([
    ["the usual check", Buffer.from("123456789"), 0xe3069283],
    ["zeros (RFC 3720)", Buffer.alloc(32), 0x8a9136aa],
    ["ones (RFC 3720)", Buffer.alloc(32, 0xff), 0x62a8ab43],
    ["counting up (RFC 3720)", Buffer.from(Array.from({ length: 32 }, (_, at) => at)), 0x46dd794e],
    ["nothing", Buffer.alloc(0), 0],
  ])("of %s", (_, data, crc) => {
    expect(crc32c(data)).toBe(crc)
  })
})

describe("an event file", () => {
  it("holds every number of every report, by name, with its time and iteration", async () => {
    const reports = reportsOf(6)
    await observe(folder, reports)
    const [name, ...others] = await readdir(folder)
    expect(others).toEqual([])
    expect(name).toMatch(new RegExp(`^events\\.out\\.tfevents\\.\\d{10}\\..+\\.${process.pid}\\.0$`))
    const [version, start, ...events] = parseEvents(await readFile(join(folder, name!)))
    expect(version).toMatchObject({ version: "brain.Event:2", step: 0, values: {} })
    expect(start).toMatchObject({ session: 1, step: 0, values: {} })
    expect(events).toEqual(reports.map(single))
    expect(Object.keys(events[1]!.values)).toEqual([
      ...["episode/success", "episode/return", "time/run", "evaluation/success", "evaluation/boxes"],
      ...["evaluation/episodes", "evaluation/failed", "evaluation/return", "evaluation/steps"],
      ...["evaluation/success-low", "evaluation/success-high"],
    ])
  })

  it("takes any number and any name", async () => {
    const metrics = {
      ...{ nan: Number.NaN, up: Number.POSITIVE_INFINITY, down: Number.NEGATIVE_INFINITY, zero: -0, tiny: 1e-42 },
      ...{ "é 漢/…": 1e39, [`long ${"x".repeat(70_000)}`]: 1 / 3 },
    }
    const time = new Date(0).toISOString()
    await observe(folder, [
      { iteration: 2 ** 40 + 1, time, metrics },
      { iteration: 2 ** 40 + 2, time, metrics: {} },
    ])
    const events = await readEventFolder(folder)
    expect(events).toEqual([
      single({ iteration: 2 ** 40 + 1, time, metrics }),
      { step: 2 ** 40 + 2, time: 0, values: {} },
    ])
    expect(events[0]!.values).toMatchObject({ nan: Number.NaN, up: Number.POSITIVE_INFINITY, zero: -0 })
  })

  it("is readable up to its end, wherever it is cut off", async () => {
    await observe(folder, reportsOf(3))
    const whole = await readFile(join(folder, (await readdir(folder))[0]!))
    const events = parseEvents(whole)
    const counts = Array.from({ length: whole.length + 1 }, (_, length) => {
      const read = parseEvents(whole.subarray(0, length))
      expect(read).toEqual(events.slice(0, read.length))
      return read.length
    })
    expect(new Set(counts)).toEqual(new Set([0, 1, 2, 3, 4, 5]))
    expect(counts).toEqual([...counts].sort())
  })

  it("is on the disk as far as was reported", async () => {
    const observer = tensorBoard({ directory: folder })
    await observer.start!({ iteration: 0, iterations: 3 })
    for (const [at, report] of reportsOf(3).entries()) {
      await observer.report!(report)
      expect(await readEventFolder(folder)).toHaveLength(at + 1)
    }
    await observer.end!({ iteration: 3 })
  })
})

describe("a run in TensorBoard", () => {
  const events = async () => await readEventFolder(join(folder, "run", "tensorboard"))
  const part = async (iterations: number, changes: object = {}, opening: object = { resume: "auto" }) => {
    await using run = await Run.open(join(folder, "run"), {}, opening)
    const training = { ...tableSetup(), iterations, evaluation: { every: 2, tasks: 3 } }
    await train({ ...training, run, observers: [tensorBoard()], ...changes })
  }

  it("is what metrics.jsonl says, however often it was stopped, with or without TensorBoard", async () => {
    await part(2)
    await part(3)
    await part(5, { observers: [] })
    await part(7)
    expect(await events()).toEqual((await logged(join(folder, "run"))).map(single))
    expect(await readdir(join(folder, "run", "tensorboard"))).toHaveLength(3)
  })

  it("has an evaluation that was made up for, and nothing twice", async () => {
    const controller = new AbortController()
    const stopped = part(4, {
      signal: controller.signal,
      onProgress: ({ stage }: { stage: string }) => stage === "evaluation" && controller.abort(),
      evaluation: { every: 3, tasks: 3 },
    })
    await expect(stopped).rejects.toThrow()
    await part(4, { evaluation: { every: 3, tasks: 3 } })
    const log = await logged(join(folder, "run"))
    expect(log.map(({ evaluation }) => evaluation !== undefined)).toEqual([true, false, false, true, true])
    expect(await events()).toEqual(log.map(single))
  })

  it("is the new run where one was overwritten", async () => {
    await part(4)
    await part(2, {}, { overwrite: true })
    expect(await events()).toEqual((await logged(join(folder, "run"))).map(single))
  })

  it("has a folder of its own, also where one observer is told of several", async () => {
    const observers = [tensorBoard()]
    await part(4, { observers })
    await using other = await Run.open(join(folder, "other"), {})
    await train({ ...tableSetup(), run: other, observers })
    expect(await events()).toEqual((await logged(join(folder, "run"))).map(single))
    const others = await readEventFolder(join(folder, "other", "tensorboard"))
    expect(others).toEqual((await logged(join(folder, "other"))).map(single))
  })

  it("needs a place", async () => {
    const warnings: string[] = []
    const onWarning = (warning: string) => warnings.push(warning)
    await train({ ...tableSetup(), observers: [tensorBoard()], onWarning })
    expect(warnings).toEqual([expect.stringMatching(/tensorBoard threw in start\(\): tensorBoard needs a directory/)])
    expect(() => tensorBoard({ folder: "x" } as never)).toThrow(/directory/)
  })

  it("is whole again once what it was written to can be written again", async () => {
    const place = join(folder, "place")
    await writeFile(place, "in the way")
    const observer = tensorBoard({ directory: place })
    const run = join(folder, "run")
    const reports = reportsOf(3)
    await madeFolder(run, {}, reports)
    await observer.start!({ iteration: 0, iterations: 3, directory: run })
    await expect(observer.report!(reports[0]!)).rejects.toMatchObject({ code: "IO" })
    await rm(place)
    for (const report of reports.slice(1)) await observer.report!(report)
    await observer.end!({ iteration: 3 })
    expect(await readEventFolder(place)).toEqual(reports.map(single))
  })

  it("is not held up by a place where nothing can be written", async () => {
    await writeFile(join(folder, "file"), "")
    const warnings: string[] = []
    const onWarning = (warning: string) => warnings.push(warning)
    const observers = [tensorBoard({ directory: join(folder, "file", "below") })]
    expect(await train({ ...tableSetup(), observers, onWarning })).toHaveLength(3)
    expect(warnings).toEqual([expect.stringMatching(/tensorBoard threw in report\(\): Could not create/)])
    expect((await stat(join(folder, "file"))).size).toBe(0)
  })

  const python = process.env.GIGPO_TENSORBOARD_PYTHON
  it.skipIf(python === undefined)(
    `agrees with TensorBoard's own reader${python ? "" : " (GIGPO_TENSORBOARD_PYTHON names a Python that has it)"}`,
    async () => {
      await part(2)
      await part(5)
      const script = `
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator as Newer
from tensorboard.util.tensor_util import make_ndarray
old = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0}); old.Reload()
new = Newer(sys.argv[1], size_guidance={"tensors": 0}, tensor_size_guidance={"scalars": 10000}); new.Reload()
print(json.dumps([
  {tag: [[e.step, e.wall_time, e.value] for e in old.Scalars(tag)] for tag in old.Tags()["scalars"]},
  {tag: [[e.step, e.wall_time, float(make_ndarray(e.tensor_proto))] for e in new.Tensors(tag)] for tag in new.Tags()["tensors"]},
]))`
      const place = join(folder, "run", "tensorboard")
      const { stdout } = await promisify(execFile)(python!, ["-c", script, place], { maxBuffer: 2 ** 26 })
      const wanted: Record<string, number[][]> = {}
      for (const { time, step, values } of (await logged(join(folder, "run"))).map(single))
        for (const [tag, value] of Object.entries(values)) {
          wanted[tag] ??= []
          wanted[tag].push([step, time!, value])
        }
      const [old, newer] = JSON.parse(stdout)
      expect(old).toEqual(wanted)
      expect(newer).toEqual(wanted)
    },
  )
})
