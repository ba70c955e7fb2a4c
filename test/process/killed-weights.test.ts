import { execFile } from "node:child_process"
import { mkdtemp, readdir, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { KeptWeights } from "../../src/engine-server/kept-weights.ts"
import type { ServedModel } from "../../src/engine-server/served-model.ts"
import { FakePolicy } from "../training/fake-policy.ts"
import { notBuilt } from "./run-program.ts"

// Weights that clients of `gigpo engine` save, with the process killed at each single write.

const program = (name: string) => fileURLToPath(new URL(`programs/${name}.mjs`, import.meta.url))
const run = promisify(execFile)
const path = "tinker://s:train:0/weights/latest"

function modelWith(policy: FakePolicy): ServedModel {
  return { id: "s:train:0", baseModel: "tiny", rank: 0, version: 0, policy } as unknown as ServedModel
}

/** What a server that starts after the crash finds: the weights by their first number, or why there are none. */
async function foundIn(folder: string): Promise<string> {
  const kept = new KeptWeights(folder)
  await kept.recover()
  const policy = new FakePolicy()
  const saved = await readdir(folder, { recursive: true })
  const listed = await kept.list("s:train:0")
  try {
    await kept.load(modelWith(policy), path, true)
  } catch (error) {
    expect(error).toMatchObject({ status: 404 })
    expect(listed).toEqual([])
    expect(saved.filter((name) => /about\.json$|model-|latest/.test(name))).toEqual([])
    return "none"
  }
  expect(listed).toEqual(["weights/latest"])
  expect(saved.filter((name) => name.endsWith("weights.bin"))).toHaveLength(1)
  expect([policy.weights[0], policy.moments[0]]).toEqual([policy.steps, policy.steps])
  return String(policy.steps)
}

describe.skipIf(notBuilt !== "")(`weights of a server that is killed${notBuilt}`, () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-weights-"))
  })
  afterAll(() => rm(folder, { recursive: true }))

  /** What a crash leaves is known by its place, so each folder is written where it is used. */
  const nothing = async () => {}
  async function before(folder: string): Promise<void> {
    const policy = new FakePolicy()
    policy.weights = policy.moments = Float32Array.of(1, 1)
    policy.steps = 1
    await new KeptWeights(folder).save(modelWith(policy), "weights", "latest", false)
  }

  /** Does the work on a folder, and is killed at a write; not killed if there are fewer writes. */
  async function killed(name: string, from: typeof before, write: number): Promise<{ copy: string; ended: boolean }> {
    const copy = await mkdtemp(join(folder, "copy-"))
    await from(copy)
    const env = { ...process.env, GIGPO_TEST_DISK: `kill:${write}` }
    const words = ["--import", program("faulty-disk"), program("weights"), copy, name]
    const { signal = null, stderr } = await run(process.execPath, words, { env }).catch((error) => error)
    expect([null, "SIGKILL"], stderr).toContain(signal)
    if (signal === null) expect(stderr).toBe("")
    return { copy, ended: signal === null }
  }

  it.each([
    ["save", nothing, ["none", "2"], 8],
    ["overwrite", before, ["1", "2"], 8],
    ["remove", before, ["1", "none"], 1],
  ] as const)("are the earlier ones or the new ones after a kill in: %s", async (name, from, [old, now], least) => {
    const found: string[] = []
    for (let write = 0; ; write++) {
      const { copy, ended } = await killed(name, from, write)
      found.push(await foundIn(copy))
      if (ended) break
    }
    expect(found.at(-1)).toBe(now)
    expect(found.length).toBeGreaterThan(least)
    expect(found[0]).toBe(old)
    // Once the new state is there, it stays.
    expect(found).toEqual([...found.filter((one) => one === old), ...found.filter((one) => one === now)])
  })
})
