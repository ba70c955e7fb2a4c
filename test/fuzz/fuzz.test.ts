import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { notBuilt } from "../process/run-program.ts"
import { fuzz, fuzzLimits, fuzzTargets } from "./fuzz.ts"

// Files and messages from elsewhere, changed at random: each is read, or refused with a GigpoError or a 4xx status. Here for some seconds with a
// fixed seed; `npm run fuzz` does it for longer, with other seeds, and keeps the inputs of findings.

const keep = mkdtempSync(join(tmpdir(), "gigpo-fuzz-kept-"))
afterAll(() => rmSync(keep, { recursive: true, force: true }))
const seed = "1"

it.skipIf(notBuilt !== "").each(fuzzTargets)(
  `%s: no input crashes, hangs, takes more memory than its share, or fails unnamed${notBuilt}`,
  async (name) => {
    const { tried, findings } = await fuzz(name, { seconds: 5, seed, from: 0, to: 2 ** 40, limits: fuzzLimits, keep })
    expect(
      findings,
      `Repeat the first by: npm run fuzz -- ${name} --seed ${seed} --input ${findings[0]?.index}`,
    ).toEqual([])
    expect(tried).toBeGreaterThan(0)
  },
)

it.skipIf(notBuilt !== "")(`finds each fault of a reader that has them all${notBuilt}`, async () => {
  const limits = { seconds: 0.5, bytes: 2 ** 27, multiple: 64 }
  const { tried, findings, slowest, largest } = await fuzz("faulty", {
    seconds: 100,
    seed,
    from: 0,
    to: 8,
    limits,
    keep,
  })
  const found = findings.map(({ index, kind }) => `${index} ${kind}`)
  expect(found).toEqual(["0 internal", "1 unhandled", "2 slow", "3 memory", "4 crash", "5 hang"])
  expect(tried).toBe(8)
  expect([slowest?.index, slowest?.input]).toEqual([2, "seed"])
  expect([largest?.index, largest?.input]).toEqual([3, "seed"])
  expect(largest?.amount).toBeGreaterThan(2 ** 27)
  // The inputs of findings, as a second run makes them.
  const files = findings.map(({ file }) => readFileSync(file!, "hex"))
  expect(new Set(files).size).toBeGreaterThan(3)
  const again = await fuzz("faulty", { seconds: 100, seed, from: 4, to: 5, limits, keep: join(keep, "again") })
  expect(again.findings.map(({ file }) => readFileSync(file!, "hex"))).toEqual([files[4]])
})
