import { execFile } from "node:child_process"
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { checkTarget, writeDirectory } from "../../src/files/atomic-directory.ts"
import { findCheckpoint, restoreCheckpoint, writeCheckpoint } from "../../src/runs/checkpoint.ts"
import { Run } from "../../src/runs/run.ts"
import { readEpisodes } from "../../src/view/record/read.ts"
import { FakePolicy, Memory } from "../training/fake-policy.ts"
import { all } from "../training/tiny.ts"
import { plainGroups, record } from "../view/record/groups.ts"
import { notBuilt } from "./run-program.ts"

const program = (name: string) => fileURLToPath(new URL(`programs/${name}.mjs`, import.meta.url))
const run = promisify(execFile)

/** Foreign files at every place of a folder. */
async function putForeign(folder: string, places: readonly string[]): Promise<void> {
  for (const place of places) {
    await mkdir(join(folder, place), { recursive: true })
    await writeFile(join(folder, place, "thesis.md"), `mine in ${place}`)
  }
}

/** Every file below a folder, with what it holds; not what a killed process holds locked, or was making beside it. */
async function contents(folder: string): Promise<Record<string, string>> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true })
  const files = entries.filter((entry) => entry.isFile() && entry.name !== "run.lock")
  const paths = files
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((path) => !/\.tmp-|\.gigpo-new-/.test(path))
  return Object.fromEntries(
    await Promise.all(paths.map(async (path) => [relative(folder, path), await readFile(path, "latin1")])),
  )
}

describe.skipIf(notBuilt !== "")(`what is being written when the process is killed${notBuilt}`, () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-killed-"))
  })
  afterAll(() => rm(folder, { recursive: true }))

  /** Does the work on a copy of `before` with a fault in the disk, and returns the copy; and how many writes there were. */
  async function work(name: string, before: string, fault = ""): Promise<{ copy: string; writes: number }> {
    const copy = await mkdtemp(join(folder, "copy-"))
    await cp(before, copy, { recursive: true })
    const counted = join(folder, "writes")
    const env = { ...process.env, GIGPO_TEST_DISK: fault, GIGPO_TEST_WRITES: counted }
    const words = ["--import", program("faulty-disk"), program("writes"), copy, name]
    const ended = await run(process.execPath, words, { env }).catch((error) => error)
    if (fault === "") expect(ended.stderr).toBe("")
    else if (fault.startsWith("kill")) expect(ended.signal, ended.stderr).toBe("SIGKILL")
    else expect(ended.stderr).toMatch(fault.startsWith("ENOSPC") ? /the disk is full/ : /read-only/)
    return { copy, writes: fault === "" ? Number(await readFile(counted, "utf8")) : 0 }
  }

  /** Which checkpoint is found, with all of it as it was written. */
  async function found(parent: string): Promise<number> {
    const warnings: string[] = []
    const checkpoint = await findCheckpoint(parent, (message) => warnings.push(message))
    expect(checkpoint).toBeDefined()
    const [iteration, estimator] = [checkpoint!.iteration, new Memory("mine")]
    const restored: string[] = []
    const restore = async (_: unknown, directory: string) => {
      restored.push(directory)
      const weights = await readFile(join(directory, "weights.bin"))
      expect(new Float32Array(weights.slice().buffer)).toEqual(Float32Array.of(iteration, iteration))
    }
    const store = { ...new FakePolicy().store, restore }
    await restoreCheckpoint(checkpoint!, { store, critic: async () => store, parts: { estimator } })
    expect(restored).toEqual([checkpoint!.directory, join(checkpoint!.directory, "critic")])
    expect(estimator).toMatchObject({ count: iteration, arrays: { means: Float64Array.of(iteration, iteration) } })
    expect(warnings).toEqual([])
    return iteration
  }

  it("leaves a checkpoint that is whole, with the critic and the memory of the estimator in it", async () => {
    const before = join(folder, "before")
    const [policy, estimator] = [new FakePolicy(), new Memory("mine")]
    policy.weights = Float32Array.of(1, 1)
    estimator.count = 1
    estimator.arrays = { means: Float64Array.of(1, 1) }
    const { store } = policy
    await writeCheckpoint(before, 1, { store, critic: async () => store, parts: { estimator } })
    const { copy, writes } = await work("checkpoint", before)
    expect(await readdir(copy)).toEqual(["iteration-2"])
    expect(await found(copy)).toBe(2)
    expect(writes).toBeGreaterThan(20)
    const after: number[] = []
    for (let write = 0; write < writes; write++)
      after.push(await found((await work("checkpoint", before, `kill:${write}`)).copy))
    expect(new Set(after)).toEqual(new Set([1, 2]))
    expect(after).toEqual(after.toSorted()) // once the new one is there, it stays
  })

  /** Faults at every write leave the old or the new result complete, after recovery by the next process. */
  async function oldOrNew(name: string, before: string, comesNext: (copy: string) => Promise<unknown>): Promise<void> {
    const [{ copy, writes }, old] = [await work(name, before), await contents(before)]
    await comesNext(copy)
    const now = await contents(copy)
    expect(now).not.toEqual(old)
    expect(writes).toBeGreaterThan(20)
    const after: string[] = []
    for (let write = 0; write < writes; write++) {
      for (const what of write % 4 === 0 ? ["kill", "ENOSPC", "EROFS"] : ["kill"]) {
        const { copy } = await work(name, before, `${what}:${write}`)
        await comesNext(copy)
        const found = await contents(copy)
        const which = JSON.stringify(found) === JSON.stringify(old) ? "old" : "new"
        if (which === "new") expect(found, `${what} at write ${write}`).toEqual(expect.objectContaining(essential(now)))
        if (what === "kill") after.push(which)
        await rm(copy, { recursive: true })
      }
    }
    expect(new Set(after)).toEqual(new Set(["old", "new"]))
    expect(after).toEqual(after.toSorted().reverse())
  }

  /** A run that was stopped before its model was written has none; what it has is whole. */
  const essential = (now: Record<string, string>) =>
    Object.fromEntries(Object.entries(now).filter(([name]) => !/^model\/(?!thesis)/.test(name)))

  it("leaves the old model or the new one, and every file of others", async () => {
    const before = join(folder, "model")
    await writeDirectory(before, async (temporary) => {
      await writeFile(join(temporary, "config.json"), "old")
      await writeFile(join(temporary, "model-00001-of-00002.safetensors"), "old")
    })
    await putForeign(before, [".", "optimizer", ".git"])
    await oldOrNew("model", before, async (copy) => await checkTarget(copy, { overwrite: true }))
  })

  it("leaves the old run or the new one, and every file of others", async () => {
    const before = join(folder, "run")
    const old = await Run.open(before, { seed: 1 })
    for (const iteration of [1, 2]) {
      await old.log({ iteration, metrics: {} })
      await old.saveCheckpoint(iteration, new FakePolicy(), 2)
    }
    await old.saveModel(new FakePolicy())
    await old.close()
    await record(before, [[1, plainGroups(1)]])
    await putForeign(before, [".", "checkpoints", "checkpoints/iteration-1", "episodes", "model", "mine"])
    await oldOrNew("run", before, async (copy) => {
      const run = await Run.open(copy, { seed: 1 }, { overwrite: true })
      await run.close() // it was never begun
    })
  })

  it("leaves every recorded iteration whole, and nothing half after the next start", async () => {
    const before = join(folder, "recorded")
    const old = [1, 2, 3].map((iteration) => [iteration, plainGroups(2, "old")] as const)
    await record(before, old)
    const stages = ["old 1,2,3", "old 1,2", "old 1,2 new 3", "old 1,2 new 3,4", "old 2 new 3,4"]
    const stageOf = async (copy: string) => {
      const groups = await all(readEpisodes(copy))
      const words = groups.map(({ iteration, episodes: [one] }) => [one!.steps[0]!.action, iteration] as const)
      const iterationsOf = (wanted: string) => [
        ...new Set(words.filter(([word]) => word === wanted).map(([, iteration]) => iteration)),
      ]
      const found = ["old", "new"].map((word) => [word, iterationsOf(word).join()] as const)
      return found.flatMap(([word, those]) => (those ? [`${word} ${those}`] : [])).join(" ")
    }
    const { copy, writes } = await work("episodes", before)
    expect(await stageOf(copy)).toBe(stages.at(-1))
    const after = { kill: new Set<string>(), ENOSPC: new Set<string>() }
    let half = 0
    const removed = 2 // iterations, which counts where a process is killed
    for (const [what, last] of [
      ["kill", writes + removed],
      ["ENOSPC", writes],
    ] as const) {
      for (let write = 0; write < last; write++) {
        const { copy } = await work("episodes", before, `${what}:${write}`)
        after[what].add(await stageOf(copy))
        const names = () => readdir(join(copy, "episodes"))
        const temporary = (await names()).filter((name) => name.includes(".tmp-"))
        if (what === "kill") half += temporary.length
        else expect(temporary).toEqual([])
        await record(copy, [], { from: 9 })
        expect((await names()).filter((name) => !/^iteration-\d\.episodes$/.test(name))).toEqual([])
      }
    }
    expect(half).toBeGreaterThan(4)
    expect(after.kill).toEqual(new Set(stages.slice(0, -1)))
    expect(after.ENOSPC).toEqual(new Set(stages.slice(1, -1)))
  })
})
