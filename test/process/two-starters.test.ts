import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Run } from "../../src/runs/run.ts"
import { FakePolicy } from "../training/fake-policy.ts"

const starters = 6

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-starters-"))
})
afterAll(async () => await rm(folder, { recursive: true }))

/** Begins a run as training does; the winner keeps it until the others have ended. */
async function start(directory: string, resume: "auto" | false, others: Promise<void>): Promise<string> {
  try {
    await using run = await Run.open(directory, { seed: 1 }, { resume })
    await run.check(new FakePolicy())
    await run.begin()
    await others
    await run.log({ iteration: 1, metrics: {} })
    return "begun"
  } catch (error) {
    const { code, message } = error as { code?: string; message: string }
    return `${code}: ${message}`
  }
}

describe("several that begin a run in one new folder", () => {
  it.each(["auto", false] as const)("are all but one told that it is locked (resume: %s)", async (resume) => {
    for (let round = 0; round < 20; round++) {
      const directory = join(folder, `${resume}-${round}`, "runs", "new")
      let [ended, end] = [0, () => {}]
      const losers = new Promise<void>((resolve) => {
        end = resolve
      })
      const all = Array.from({ length: starters }, async () => {
        const outcome = await start(directory, resume, losers)
        if (++ended === starters - 1) end()
        return outcome
      })
      const outcomes = await Promise.all(all)
      const others = outcomes.filter((outcome) => outcome !== "begun")
      expect(others).toHaveLength(starters - 1)
      for (const other of others) {
        expect(other).toMatch(/^RUN_LOCKED: /)
        expect(other).not.toMatch(/overwrit|is a broken link/)
      }
      expect(await readFile(join(directory, "metrics.jsonl"), "utf8")).toBe('{"iteration":1,"metrics":{}}\n')
    }
  })
})
