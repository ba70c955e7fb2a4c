import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { acquireLock, newLock, releaseLock } from "../../src/files/lock.ts"

let folder: string
let path: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-lock-"))
  path = join(folder, "run.lock")
})
afterEach(async () => await rm(folder, { recursive: true }))

/** Writes a lock as this process would, with some of it changed. */
async function putLock(change: object): Promise<void> {
  await writeFile(path, `${JSON.stringify({ ...JSON.parse(newLock(path).text), ...change })}\n`)
}

async function deadProcess(): Promise<number> {
  const child = spawn(process.execPath, ["-e", ""])
  await once(child, "exit")
  return child.pid!
}

const refusal = {
  code: "RUN_LOCKED",
  message: expect.stringMatching(/Process \d+ on .* is using this run folder.*remove that file/),
}

describe("a run's lock", () => {
  it("is rejected while its holder lives, and free once it is given back", async () => {
    const lock = await acquireLock(path)
    await expect(acquireLock(path)).rejects.toMatchObject(refusal)
    await releaseLock(lock)
    expect(await readdir(folder)).toEqual([])
    await releaseLock(await acquireLock(path))
  })

  it("is taken over from a dead process", async () => {
    await putLock({ pid: await deadProcess() })
    const lock = await acquireLock(path)
    expect(await readFile(path, "utf8")).toBe(lock.text)
    expect(await readdir(folder)).toEqual(["run.lock"])
  })

  it.skipIf(process.platform !== "linux")(
    "is taken over when the process id now belongs to another process",
    async () => {
      await putLock({ started: "1" })
      await acquireLock(path)
    },
  )

  it.skipIf(process.platform !== "linux")("is taken over from before the machine was started anew", async () => {
    await putLock({ boot: "00000000-0000-0000-0000-000000000000" })
    await acquireLock(path)
  })

  it("is not taken from a process on another machine, which cannot be looked at", async () => {
    await putLock({ host: "elsewhere.example", pid: await deadProcess() })
    await expect(acquireLock(path)).rejects.toMatchObject(refusal)
  })

  it.each(["", "{", "null\n", "{}\n"])("is taken over where a crash left only %j", async (text) => {
    await writeFile(path, text)
    const lock = await acquireLock(path)
    expect(await readFile(path, "utf8")).toBe(lock.text)
  })

  it("of a dead process is taken over by exactly one of many", async () => {
    const pid = await deadProcess()
    for (let round = 0; round < 50; round++) {
      await putLock({ pid })
      const results = await Promise.allSettled(Array.from({ length: 8 }, () => acquireLock(path)))
      const winners = results.filter((result) => result.status === "fulfilled")
      expect(winners).toHaveLength(1)
      expect(await readFile(path, "utf8")).toBe(winners[0]!.value.text)
    }
  })

  it("stays with its new holder when the old one releases it", async () => {
    const lock = await acquireLock(path)
    await putLock({ token: "of another process" })
    await releaseLock(lock)
    expect(await readdir(folder)).toEqual(["run.lock"])
  })
})
