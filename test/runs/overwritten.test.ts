import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { removeRun } from "../../src/runs/replaced.ts"
import { Run } from "../../src/runs/run.ts"
import { recordedIterations } from "../../src/view/record/folder.ts"
import { readGroup } from "../../src/view/record/read.ts"
import { EventFile } from "../../src/view/sinks/event-file.ts"
import { FakePolicy } from "../training/fake-policy.ts"
import { plainGroups, record } from "../view/record/groups.ts"
import { config, loggedIterations, placeForRun, putRun, refused, snapshot } from "./run-place.ts"

let folder: string
let directory: string
beforeEach(async () => {
  ;({ folder, directory } = await placeForRun())
})
afterEach(async () => await rm(folder, { recursive: true }))

describe("a run that is overwritten", () => {
  const other = { ...config, seed: 4 }
  /** What stands in the folder of such a run once it is closed, others' files among it. */
  const whole = ["checkpoints", "config.json", "metrics.jsonl", "mine", "model", "notes.txt"]
  const checkpoints = () => join(directory, "checkpoints")
  /** Foreign files in every folder of the run. */
  async function putForeign(): Promise<Record<string, string>> {
    const places = ["", "checkpoints", "checkpoints/iteration-2", "model", "mine"].map((name) => join(directory, name))
    for (const place of places) {
      await mkdir(place, { recursive: true })
      await writeFile(join(place, "notes.txt"), "mine")
    }
    return Object.fromEntries(places.map((place) => [join(place, "notes.txt"), "mine"]))
  }
  async function putOld(): Promise<void> {
    await putRun(directory, 2, [1, 2])
    const run = await Run.open(directory, config, { resume: true })
    await run.saveModel(new FakePolicy())
    await run.close()
  }

  it("is replaced completely once the new one has a checkpoint, except for foreign files", async () => {
    await putOld()
    const foreign = await putForeign()
    const before = await snapshot(folder)
    const refusedLater = await Run.open(directory, other, { overwrite: true })
    await refusedLater.close()
    expect(await snapshot(folder)).toEqual(before)
    const run = await Run.open(directory, other, { overwrite: true })
    await run.begin()
    expect(await loggedIterations(directory)).toEqual([])
    expect(run.replaces).toBe(true)
    await run.saveCheckpoint(1, new FakePolicy(), 2)
    expect(run.replaces).toBe(false)
    await run.close()
    expect((await readdir(directory)).sort()).toEqual(whole)
    expect((await readdir(checkpoints())).sort()).toEqual(["iteration-1", "iteration-2", "notes.txt"])
    expect(await readdir(join(checkpoints(), "iteration-2"))).toEqual(["notes.txt"])
    expect(await snapshot(folder)).toMatchObject(foreign)
    expect(JSON.parse(await readFile(join(directory, "config.json"), "utf8")).seed).toBe(4)
    expect(await readdir(join(folder, "runs"))).toEqual(["one"])
  })

  it("is restored if the new one ends before its first checkpoint", async () => {
    await putOld()
    await putForeign()
    const before = await snapshot(folder)
    const run = await Run.open(directory, other, { overwrite: true })
    for (const iteration of [0, 1]) await run.log({ iteration, metrics: {} })
    expect(await snapshot(folder)).not.toEqual(before)
    await run.close()
    expect(await snapshot(folder)).toEqual(before)
    expect(await readdir(directory)).toEqual(whole)
  })

  it("is removed if the new one has a model", async () => {
    await putOld()
    const run = await Run.open(directory, other, { overwrite: true })
    await run.saveModel(new FakePolicy())
    await run.close()
    expect(JSON.parse(await readFile(join(directory, "config.json"), "utf8")).seed).toBe(4)
    expect(await readdir(checkpoints())).toEqual([])
  })

  it("is restored with a warning after its process was killed", async () => {
    await putOld()
    const before = await snapshot(folder)
    const killed = await Run.open(directory, other, { overwrite: true })
    await killed.log({ iteration: 1, metrics: {} })
    await rm(join(directory, "run.lock"))
    const warnings: string[] = []
    const run = await Run.open(directory, config, { resume: true, onWarning: (text) => warnings.push(text) })
    expect(run.iteration).toBe(2)
    expect(warnings).toEqual([expect.stringMatching(/was restored: the run that was started to replace it/)])
    await run.close()
    expect(await snapshot(folder)).toEqual(before)
    await killed.close()
  })

  it("keeps episodes and event files separate, and gets its own back", async () => {
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

  it("keeps a model written by gigpo 0.1, under another name", async () => {
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

  it("is unchanged if the new one cannot be created", async () => {
    await putRun(directory, 2, [2])
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

  it("is rejected while another process works in it, as is resuming it", async () => {
    await putRun(directory, 2, [2])
    const run = await Run.open(directory, config, { resume: true })
    for (const options of [{ overwrite: true }, { resume: true }])
      await refused(directory, options, "RUN_LOCKED", /is using this run folder/)
    await run.close()
  })

  it("cannot be resumed at once", async () => {
    await putRun(directory, 2, [2])
    await refused(directory, { overwrite: true, resume: true }, "BAD_ARGUMENT", /choose one/)
  })
})
