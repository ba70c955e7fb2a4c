import { mkdtempSync, writeFileSync } from "node:fs"
import { readdir, utimes } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { expect, it } from "vitest"
import { locked } from "../../src/hub/lock.ts"

/** A lock that a process of another machine left. */
function foreignLock(): string {
  const path = join(mkdtempSync(join(tmpdir(), "gigpo-lock-")), "x.lock")
  writeFileSync(path, `${JSON.stringify({ pid: 1, host: "another-machine" })}\n`)
  return path
}

const waiting = (dead: number) => ({ signal: undefined, onWait: () => {}, dead })

it("takes over the lock of a machine without a sign of life, and removes its own", async () => {
  const path = foreignLock()
  expect(await locked(path, waiting(500), async () => "done")).toBe("done")
  expect(await readdir(join(path, ".."))).toEqual([])
})

it("waits while there are signs of life", async () => {
  const path = foreignLock()
  const alive = setInterval(() => void utimes(path, new Date(), new Date()), 100)
  const begun = performance.now()
  void sleep(2000).then(() => clearInterval(alive))
  await locked(path, waiting(1000), async () => {})
  expect(performance.now() - begun).toBeGreaterThan(2500)
})

it("admits one at a time, and is released after a failure", async () => {
  const path = join(mkdtempSync(join(tmpdir(), "gigpo-lock-")), "x.lock")
  let working = 0
  let most = 0
  const work = async () => {
    most = Math.max(most, ++working)
    await sleep(20)
    working--
    throw new Error("failed")
  }
  const all = await Promise.allSettled(Array.from({ length: 4 }, () => locked(path, waiting(60_000), work)))
  expect([most, all.map(({ status }) => status)]).toEqual([1, Array(4).fill("rejected")])
})
