import { execFile } from "node:child_process"
import { cp, mkdtemp, readdir, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { findCheckpoint, restoreCheckpoint, writeCheckpoint } from "../../src/training/checkpoint.ts"
import { FakePolicy, Memory } from "../training/fake-policy.ts"
import { notBuilt } from "./run-program.ts"

const program = fileURLToPath(new URL("programs/killed-writes.mjs", import.meta.url))
const run = promisify(execFile)

describe.skipIf(notBuilt !== "")(`a checkpoint whose writing is killed${notBuilt}`, () => {
  let folder: string
  let before: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-killed-"))
    before = join(folder, "before")
    const [policy, estimator] = [new FakePolicy(), new Memory("mine")]
    policy.weights = Float32Array.of(1, 1)
    estimator.count = 1
    estimator.arrays = { means: Float64Array.of(1, 1) }
    const { store } = policy
    await writeCheckpoint(before, 1, { store, critic: async () => store, parts: { estimator } })
  })
  afterAll(() => rm(folder, { recursive: true }))

  /** Which checkpoint is found after a kill at this write, with all of it as it was written; the program's output. */
  async function kill(write: number) {
    const parent = join(folder, `at-${write}`)
    await cp(before, parent, { recursive: true })
    const stdout = await run(process.execPath, [program, parent, String(write)]).then(
      (done) => done.stdout,
      (error) => {
        expect(error.signal, error.stderr).toBe("SIGKILL")
        return ""
      },
    )
    const warnings: string[] = []
    const found = await findCheckpoint(parent, (message) => warnings.push(message))
    expect(found, `after a kill at write ${write}`).toBeDefined()
    const [iteration, estimator] = [found!.iteration, new Memory("mine")]
    const restored: string[] = []
    const restore = async (_: unknown, directory: string) => {
      restored.push(directory)
      const weights = await readFile(join(directory, "weights.bin"))
      expect(new Float32Array(weights.slice().buffer)).toEqual(Float32Array.of(iteration, iteration))
    }
    const store = { ...new FakePolicy().store, restore }
    await restoreCheckpoint(found!, { store, critic: async () => store, parts: { estimator } })
    expect(restored).toEqual([found!.directory, join(found!.directory, "critic")])
    expect(estimator).toMatchObject({ count: iteration, arrays: { means: Float64Array.of(iteration, iteration) } })
    expect(warnings).toEqual([])
    return { iteration, stdout, left: await readdir(parent) }
  }

  it("at every write leaves one that is whole, with the critic and the memory of the estimator in it", async () => {
    const whole = await kill(Number.MAX_SAFE_INTEGER)
    expect(whole).toMatchObject({ iteration: 2, left: ["step-2"] })
    const writes = Number(whole.stdout)
    expect(writes).toBeGreaterThan(20)
    const found: number[] = []
    for (let write = 0; write < writes; write++) found.push((await kill(write)).iteration)
    expect(new Set(found)).toEqual(new Set([1, 2]))
    expect(found).toEqual(found.toSorted()) // once the new one is there, it stays
  })
})
