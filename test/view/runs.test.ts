import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { newLock } from "../../src/files/lock.ts"
import { describeRun, findRuns } from "../../src/view/runs.ts"
import { madeFolder, reportsOf } from "./run-folder.ts"

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-runs-"))
})
afterEach(async () => await rm(folder, { recursive: true }))

describe("runs are found", () => {
  it("by what stands in their folders, at any depth that runs are kept at, and not within runs", async () => {
    for (const name of ["b", "a", "deep/er/c", "b/model"]) await madeFolder(join(folder, name), {}, [])
    for (const name of [".gigpo-x/d", "node_modules/e", "empty"]) await mkdir(join(folder, name), { recursive: true })
    await writeFile(join(folder, "file"), "")
    await symlink(folder, join(folder, "loop"))
    expect(await findRuns(folder)).toEqual(["a", "b", "deep/er/c"].map((name) => join(folder, name)))
    expect(await findRuns(join(folder, "a"))).toEqual([join(folder, "a")])
  })

  it("next to folders with links, which are rejected when they are read", async () => {
    await madeFolder(join(folder, "b"), {}, [])
    await mkdir(join(folder, "a"))
    await symlink("metrics.jsonl", join(folder, "a", "metrics.jsonl")) // leads to itself
    expect(await findRuns(folder)).toEqual([join(folder, "a"), join(folder, "b")])
    await expect(describeRun(join(folder, "a"))).rejects.toMatchObject({ code: "UNSAFE_PATH" })
  })

  it("or it is said that there is no such folder", async () => {
    await expect(findRuns(join(folder, "none"))).rejects.toMatchObject({ code: "IO" })
    await expect(describeRun(folder)).rejects.toMatchObject({ code: "BAD_ARGUMENT", message: /There is no run in/ })
  })
})

describe("a run", () => {
  const described = async (config: object, count: number, changes: object = {}) => {
    const directory = join(folder, "doors", "one")
    const reports = reportsOf(count).map((report, at) => ({ ...report, ...(at === count - 1 && changes) }))
    await madeFolder(directory, config, reports)
    return await describeRun(directory, { within: folder })
  }

  it("has every setting by its dotted key, as what JSON holds", async () => {
    const config = { gigpo: "0", seed: 7, training: { iterations: 4, x: null }, list: [1, { a: 2 }], on: false }
    const { settings, ...info } = await described({ ...config, far: Number.POSITIVE_INFINITY }, 2)
    expect(info).toEqual({
      ...{ id: join("doors", "one"), name: join("doors", "one"), state: "stopped", iteration: 2, iterations: 4 },
      ...{ time: reportsOf(2)[1]!.time, secondsLeft: 10 },
    })
    expect(settings).toEqual({
      ...{ gigpo: "0", seed: 7, "training.iterations": 4, "training.x": null },
      ...{ list: '[1,{"a":2}]', on: false, far: "Infinity" },
    })
  })

  it("is done after its last iteration, or where something stopped it for good", async () => {
    expect(await described({ iterations: 3 }, 3)).toMatchObject({ state: "done", iteration: 3, iterations: 3 })
    const stopped = await described({ iterations: 9 }, 3, { stopped: "enough" })
    expect(stopped).toMatchObject({ state: "done", iterations: 9 })
    expect(stopped.secondsLeft).toBeUndefined()
  })

  it("runs while a process that lives holds its lock", async () => {
    const lock = newLock(join(folder, "doors", "one", "run.lock"))
    await described({ iterations: 3 }, 1)
    await writeFile(lock.path, lock.text)
    expect(await described({ iterations: 3 }, 1)).toMatchObject({ state: "running" })
    await writeFile(lock.path, `${JSON.stringify({ ...JSON.parse(lock.text), started: "another process" })}\n`)
    expect(await described({ iterations: 3 }, 1)).toMatchObject({ state: "stopped" })
  })

  it("continues as fast as it lately was", async () => {
    const slowThenFast = reportsOf(40).map((report, at) => ({
      ...report,
      metrics: { "time/run": at < 20 ? 100 * (at + 1) : 2000 + (at - 19) },
    }))
    const directory = join(folder, "run")
    await madeFolder(directory, { iterations: 50 }, slowThenFast)
    expect((await describeRun(directory)).secondsLeft).toBeCloseTo(10, 9)
  })

  it("has no known end where its configuration does not tell, or where it is a cloning", async () => {
    const nothing = await described({}, 2)
    expect([nothing.iterations, nothing.secondsLeft, nothing.state]).toEqual([undefined, undefined, "stopped"])
    const cloning = await described({ training: { iterations: 1 } }, 2, { metrics: { "sft/epoch": 1 } })
    expect([cloning.iterations, cloning.state]).toEqual([undefined, "stopped"])
    expect(await described({ iterations: 5 }, 0)).toMatchObject({ iteration: 0, state: "stopped" })
  })
})
