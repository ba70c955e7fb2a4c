import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, truncate, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { temporaryOf } from "../../src/files/seal.ts"
import {
  checkParts,
  findCheckpoint,
  pruneCheckpoints,
  restoreCheckpoint,
  verifyCheckpoint,
  writeCheckpoint,
} from "../../src/runs/checkpoint.ts"
import { GigpoError } from "../../src/util/errors.ts"
import { FakePolicy, Memory } from "../training/fake-policy.ts"

let folder: string
let parent: string
let policy: FakePolicy
let memory: Memory
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-checkpoint-"))
  parent = join(folder, "checkpoints")
  policy = new FakePolicy()
  memory = new Memory("mine")
  memory.arrays = { means: Float64Array.of(0.1, 0.2), counts: Int32Array.of(-1) }
})
afterEach(async () => await rm(folder, { recursive: true }))

const written = [
  "config.json",
  "memory.estimator.counts.bin",
  "memory.estimator.means.bin",
  "moments.bin",
  "weights.bin",
]

const saved = () => ({ store: policy.store, parts: { estimator: memory } })

/** Writes checkpoints of these iterations; each has as many steps. */
async function write(...iterations: number[]): Promise<void> {
  for (const iteration of iterations) {
    policy.steps = iteration
    memory.count = iteration
    await writeCheckpoint(parent, iteration, saved())
  }
}

async function flipBit(path: string): Promise<void> {
  const bytes = await readFile(path)
  bytes[bytes.length - 1]! ^= 1
  await writeFile(path, bytes)
}

describe("writing a checkpoint", () => {
  it("contains a model folder with the tokenizer's files, the optimizer and a manifest of sizes and hashes", async () => {
    const tokenizer = join(folder, "tokenizer.json")
    await writeFile(tokenizer, "{}")
    policy.steps = 42
    const checkpoint = await writeCheckpoint(parent, 7, { ...saved(), files: [tokenizer] })
    expect(checkpoint).toEqual({
      directory: join(parent, "iteration-7"),
      iteration: 7,
      handle: { steps: 42 },
      memory: {
        estimator: { name: "mine", json: { count: 0 }, arrays: { means: "Float64Array", counts: "Int32Array" } },
      },
    })
    const all = [...written, "tokenizer.json"].sort()
    expect((await readdir(checkpoint.directory)).sort()).toEqual([...all, "manifest.json"].sort())
    const manifest = JSON.parse(await readFile(join(checkpoint.directory, "manifest.json"), "utf8"))
    expect(manifest).toMatchObject({ version: 2, iteration: 7, handle: { steps: 42 } })
    expect(manifest.files.map((file: { name: string }) => file.name)).toEqual(all)
    for (const { name, bytes, sha256 } of manifest.files) {
      const content = await readFile(join(checkpoint.directory, name))
      expect(bytes).toBe(content.length)
      expect(sha256).toBe(createHash("sha256").update(content).digest("hex"))
    }
  })

  it("rejects non-finite state of the engine, and keeps the older checkpoint", async () => {
    await write(1)
    const diverged = new GigpoError("NON_FINITE", "weight holds numbers that are not finite.")
    const store = { ...policy.store, checkpoint: () => Promise.reject(diverged) }
    await expect(writeCheckpoint(parent, 2, { store })).rejects.toMatchObject({
      code: "NON_FINITE",
      message: "After iteration 2, weight holds numbers that are not finite.",
    })
    expect(await readdir(parent)).toEqual(["iteration-1"])
    await verifyCheckpoint(join(parent, "iteration-1"))
  })

  it("restores the state of engine and parts", async () => {
    await write(4)
    const checkpoint = await verifyCheckpoint(join(parent, "iteration-4"))
    const [fresh, other] = [new FakePolicy(), new Memory("mine")]
    fresh.weights = Float32Array.of(9)
    await restoreCheckpoint(checkpoint, { store: fresh.store, parts: { estimator: other } })
    expect([fresh.weights, fresh.steps]).toEqual([policy.weights, 4])
    expect(other).toEqual(memory)
  })

  it("rejects other parts than it was written with", async () => {
    await write(4)
    const checkpoint = await verifyCheckpoint(join(parent, "iteration-4"))
    const forgetting = { name: "mine" }
    checkParts(checkpoint, { estimator: memory })
    for (const parts of [
      { estimator: new Memory("yours") },
      {},
      { estimator: memory, hooks: new Memory("new") },
      { estimator: forgetting },
    ]) {
      let error: unknown
      try {
        checkParts(checkpoint, parts)
      } catch (thrown) {
        error = thrown
      }
      expect(error).toMatchObject({
        code: "BAD_CONFIG",
        message: expect.stringMatching(/was written with another (estimator|hooks)/),
      })
    }
  })

  it.each([undefined, () => {}, { at: new Date(0) }])("rejects a handle that JSON loses: %s", async (handle) => {
    const store = { ...policy.store, checkpoint: async () => handle as never }
    await expect(writeCheckpoint(parent, 2, { store })).rejects.toThrow(/must return a JSON value/)
    expect(await readdir(parent)).toEqual([])
  })

  it.each(["checkpoint"] as const)("leaves the older checkpoint when the disk is full in %s", async (name) => {
    await write(1)
    const full = async () => {
      throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC", syscall: "write" })
    }
    await expect(writeCheckpoint(parent, 2, { store: { ...policy.store, [name]: full } })).rejects.toMatchObject({
      code: "IO",
      message: expect.stringMatching(/the disk is full/),
    })
    expect(await readdir(parent)).toEqual(["iteration-1"])
    await verifyCheckpoint(join(parent, "iteration-1"))
  })

  it("replaces a damaged one of the same iteration", async () => {
    await write(5)
    await flipBit(join(parent, "iteration-5", "weights.bin"))
    await write(5)
    await verifyCheckpoint(join(parent, "iteration-5"))
    expect(await readdir(parent)).toEqual(["iteration-5", "suspect-5"]) // which is set aside
    await write(5)
    expect(await readdir(parent)).toEqual(["iteration-5", "suspect-5"]) // one that is whole is replaced
    await writeFile(join(parent, "iteration-5", "manifest.json"), "")
    await write(5)
    await verifyCheckpoint(join(parent, "iteration-5"))
    expect(await readdir(parent)).toEqual(["iteration-5", "suspect-5", "suspect-5-2"])
  })
})

describe("verifying a checkpoint", () => {
  const damage: Record<string, (path: string) => Promise<void>> = {
    "one bit flipped": flipBit,
    "one byte cut off": async (path) => await truncate(path, (await stat(path)).size - 1),
    "nothing left of it": async (path) => await truncate(path, 0),
    "it removed": async (path) => await rm(path),
  }
  it.each(written.flatMap((name) => Object.keys(damage).map((how) => [name, how] as const)))(
    "rejects %s with %s, by name",
    async (name, how) => {
      await write(1)
      await damage[how]!(join(parent, "iteration-1", name))
      await expect(verifyCheckpoint(join(parent, "iteration-1"))).rejects.toMatchObject({
        code: "RUN_CORRUPT",
        message: expect.stringContaining(name),
      })
    },
  )

  it.each([
    "",
    "{}",
    "null",
    '{"version":2,"iteration":1,"files":[]}',
    '{"version":3,"iteration":1,"handle":1,"files":[]}',
    '{"version":1,"iteration":1,"optimizerSteps":1,"files":[{}]}',
  ])("rejects the manifest %j", async (text) => {
    await write(1)
    await writeFile(join(parent, "iteration-1", "manifest.json"), text)
    await expect(verifyCheckpoint(join(parent, "iteration-1"))).rejects.toMatchObject({ code: "RUN_CORRUPT" })
  })

  it("reads the manifest of gigpo 0.1, which had no handle and no memory", async () => {
    await write(5)
    const path = join(parent, "iteration-5", "manifest.json")
    const { files } = JSON.parse(await readFile(path, "utf8"))
    const old = { version: 1, gigpo: "0.1.0", iteration: 5, optimizerSteps: 10, finite: true, files }
    await writeFile(path, JSON.stringify(old))
    const found = await verifyCheckpoint(join(parent, "iteration-5"))
    expect(found).toMatchObject({ iteration: 5, handle: { optimizerSteps: 10 }, memory: {} })
  })

  it("does not mind that the folder has been moved", async () => {
    await write(3)
    await rename(parent, join(folder, "elsewhere"))
    expect(await verifyCheckpoint(join(folder, "elsewhere", "iteration-3"))).toMatchObject({ iteration: 3 })
  })
})

describe("finding a checkpoint", () => {
  const refuseWarnings = (message: string): void => {
    throw new Error(message)
  }

  it("is the newest by number, not by name", async () => {
    await write(9, 10, 100)
    expect(await findCheckpoint(parent, refuseWarnings)).toMatchObject({ iteration: 100, handle: { steps: 100 } })
  })

  it("falls back to an older one with a warning if the newest is damaged", async () => {
    await write(1, 2, 3)
    await flipBit(join(parent, "iteration-3", "moments.bin"))
    await rm(join(parent, "iteration-2", "manifest.json"))
    const warnings: string[] = []
    expect(await findCheckpoint(parent, (message) => warnings.push(message))).toMatchObject({ iteration: 1 })
    expect(warnings).toEqual([
      expect.stringMatching(/iteration-3 is damaged: moments.bin was changed/),
      expect.stringMatching(/iteration-2 is damaged: it has no readable manifest/),
    ])
  })

  it("is not found in a folder that is empty, missing, or contains only incomplete ones", async () => {
    expect(await findCheckpoint(parent, refuseWarnings)).toBeUndefined()
    await mkdir(join(parent, "iteration-5.tmp-0123456789ab"), { recursive: true })
    expect(await findCheckpoint(parent, refuseWarnings)).toBeUndefined()
  })

  it("counts updates in supervised fine-tuning", async () => {
    await writeCheckpoint(parent, 6, { ...saved(), unit: "update" })
    expect(await readdir(parent)).toEqual(["update-6"])
    expect(await findCheckpoint(parent, refuseWarnings)).toMatchObject({ iteration: 6 })
    await rename(join(parent, "update-6"), join(parent, "update-7"))
    await expect(verifyCheckpoint(join(parent, "update-7"))).rejects.toThrow("its manifest.json is of iteration 6")
  })

  it("with the name of an earlier version is rejected with the new name", async () => {
    await write(4)
    await rename(join(parent, "iteration-4"), join(parent, "step-4"))
    await expect(findCheckpoint(parent, refuseWarnings)).rejects.toMatchObject({
      code: "RUN_CORRUPT",
      message: expect.stringMatching(
        /step-4 has the name of an earlier version: rename it to iteration-4, or to update-4/,
      ),
    })
    await rename(join(parent, "step-4"), join(parent, "iteration-4"))
    expect(await findCheckpoint(parent, refuseWarnings)).toMatchObject({ iteration: 4 })
  })
})

describe("pruning checkpoints", () => {
  it("keeps the newest, and at least one", async () => {
    await write(1, 2, 9, 10)
    await pruneCheckpoints(parent, 10, 2)
    expect((await readdir(parent)).sort()).toEqual(["iteration-10", "iteration-9"])
    await pruneCheckpoints(parent, 10, 0)
    expect(await readdir(parent)).toEqual(["iteration-10"])
  })

  it("does not count those beyond the newest whole one, which did not verify", async () => {
    await write(10, 20, 30, 15)
    await flipBit(join(parent, "iteration-20", "weights.bin"))
    await flipBit(join(parent, "iteration-30", "weights.bin"))
    await pruneCheckpoints(parent, 15, 2)
    expect((await readdir(parent)).sort()).toEqual(["iteration-10", "iteration-15", "iteration-20", "iteration-30"])
  })

  it("removes leftovers of interrupted writes, and no unknown files", async () => {
    await write(1)
    // A folder from elsewhere may have names like those of this package.
    const foreign = ["best", "iteration-2.tmp-0123456789abcdef01234567", "iteration-2.tmp-mine", "iteration-x"]
    for (const name of foreign) await mkdir(join(parent, name))
    await mkdir(await temporaryOf(join(parent, "iteration-2")))
    await pruneCheckpoints(parent, 1, 2)
    expect((await readdir(parent)).sort()).toEqual(["iteration-1", ...foreign].sort())
  })

  it("keeps a file that was changed since", async () => {
    await write(1, 2)
    await flipBit(join(parent, "iteration-1", "weights.bin"))
    await pruneCheckpoints(parent, 2, 1)
    expect(await readdir(join(parent, "iteration-1"))).toEqual(["weights.bin"])
  })
})

/** A file system of 1 MiB, where this process may make one. */
async function mountSmallDisk(at: string): Promise<boolean> {
  await mkdir(at)
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", at], { stdio: "ignore" })
    return true
  } catch {
    return false
  }
}

describe("on a disk that fills up", () => {
  it("keeps the last checkpoint (skipped if file systems cannot be mounted)", async (context) => {
    const disk = join(folder, "disk")
    if (!(await mountSmallDisk(disk))) return context.skip("this process may not mount a file system")
    try {
      policy.weights = new Float32Array(100_000) // 400 kB, so that two find room only without their optimizers
      policy.moments = new Float32Array(20_000)
      const first = await writeCheckpoint(disk, 1, saved())
      policy.moments = new Float32Array(100_000)
      await expect(writeCheckpoint(disk, 2, saved())).rejects.toMatchObject({
        code: "IO",
        message: expect.stringMatching(/the disk is full/),
      })
      expect(await readdir(disk)).toEqual(["iteration-1"])
      await verifyCheckpoint(first.directory)
    } finally {
      execFileSync("umount", [disk])
    }
  })
})
