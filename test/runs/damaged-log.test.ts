import { readFile, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { findLogDamage, logDamage, logDamageInPieces, logWarning } from "../../src/runs/check-metrics.ts"
import { Run } from "../../src/runs/run.ts"
import { FakePolicy } from "../training/fake-policy.ts"
import { config, loggedIterations, placeForRun, putRun, refused } from "./run-place.ts"

let folder: string
let directory: string
beforeEach(async () => {
  ;({ folder, directory } = await placeForRun())
})
afterEach(async () => await rm(folder, { recursive: true }))

async function damageLog(change: (lines: string[]) => string[]): Promise<void> {
  const path = join(directory, "metrics.jsonl")
  const lines = (await readFile(path, "utf8")).split("\n").slice(0, -1)
  await writeFile(
    path,
    change(lines)
      .map((line) => `${line}\n`)
      .join(""),
  )
}

const damages: readonly (readonly [string, (lines: string[]) => string[], RegExp])[] = [
  [
    "garbage in a middle line",
    (lines) => lines.with(2, "\0\0garbage"),
    /line 3 cannot be read; iteration 3 is missing/,
  ],
  ["a middle line that is no report", (lines) => lines.with(2, '{"iteration":3}'), /line 3 cannot be read/],
  ["a blank line", (lines) => lines.toSpliced(2, 0, ""), /line 3 cannot be read/],
  ["a fractional iteration", (lines) => lines.with(2, '{"iteration":2.5,"metrics":{}}'), /line 3 cannot be read/],
  ["a middle line removed", (lines) => lines.toSpliced(2, 1), /iteration 3 is missing before line 3/],
  ["the first line removed", (lines) => lines.slice(1), /iteration 1 is missing before line 1/],
  ["the line of the checkpoint removed", (lines) => lines.toSpliced(5, 1), /iteration 6 is missing/],
  ["a line duplicated", (lines) => lines.toSpliced(2, 0, lines[1]!), /line 3 is of iteration 2, but an earlier/],
  ["reversed order", (lines) => lines.toReversed(), /line 3 is of iteration 5, but an earlier/],
  ["two lines swapped", (lines) => lines.with(1, lines[2]!).with(2, lines[1]!), /iteration 2 is missing before line 2/],
  ["cut in half", (lines) => lines.slice(0, 3), /iterations 4 to 6 are missing/],
  ["emptied", () => [], /iterations 1 to 6 are missing/],
]

describe("a damaged metrics.jsonl", () => {
  it("costs no exception for each line that cannot be a report", () => {
    const parse = vi.spyOn(JSON, "parse")
    try {
      const lines = ["", "\r", "x", "}", '{"iteration":1', '{"iteration":1,"metrics":{}}\r']
      expect(logDamage(lines, { fork: true })).toMatch(/^line 1 cannot be read; line 2 .* and 2 more$/)
      expect(parse).toHaveBeenCalledTimes(1)
    } finally {
      parse.mockRestore()
    }
  })

  it.each(damages)("is rejected on resume: %s", async (_, change, message) => {
    await putRun(directory, 7, [4, 6])
    await damageLog(change)
    await refused(directory, { resume: true }, "RUN_CORRUPT", message)
    await refused(directory, { resume: "auto" }, "RUN_CORRUPT", /Restore an intact copy.*--fork .*iteration-6/)
  })

  it("is left out of a fork of the checkpoint, with a warning, and the fork can be resumed", async () => {
    await putRun(directory, 7, [4, 6])
    await damageLog((lines) => lines.toSpliced(2, 1))
    const [at, warnings] = [join(folder, "runs", "fork"), [] as string[]]
    const onWarning = (message: string) => warnings.push(message)
    const fork = await Run.open(at, config, { fork: join(directory, "checkpoints", "iteration-6"), onWarning })
    await fork.log({ iteration: 7, metrics: {} })
    await fork.saveCheckpoint(7, new FakePolicy(), 2)
    await fork.close()
    expect(warnings).toEqual([expect.stringMatching(/starts with an empty log.*iteration 3 is missing/)])
    await (await Run.open(at, config, { resume: true })).close()
    expect(await loggedIterations(at)).toEqual([7])
  })

  it.each(damages.filter(([name]) => !/cut in half|emptied/.test(name)))(
    "is reported to readers: %s",
    async (_, change) => {
      await putRun(directory, 7, [4, 6])
      expect(await logWarning(directory)).toBeUndefined()
      await damageLog(change)
      expect(await logWarning(directory)).toMatch(/metrics\.jsonl of the run in .* is damaged: .*(line|before line) \d/)
    },
  )

  it("matters only up to the checkpoint", async () => {
    await putRun(directory, 9, [6])
    await damageLog((lines) => [...lines.toSpliced(7, 1), "garbage", lines[7]!])
    const run = await Run.open(directory, config, { resume: true })
    await run.begin()
    await run.close()
    expect(await loggedIterations(directory)).toEqual([1, 2, 3, 4, 5, 6])
  })

  it("does not prevent a fork of a checkpoint without a run, or of one without saved iterations", async () => {
    await putRun(directory, 6, [6])
    await rm(join(directory, "metrics.jsonl"))
    const at = join(folder, "runs", "fork")
    const fork = await Run.open(at, config, { fork: join(directory, "checkpoints", "iteration-6") })
    await fork.begin()
    await fork.close()
    for (const iteration of [7, 8]) {
      const run = await Run.open(at, config, { resume: true })
      await run.log({ iteration, metrics: {} })
      await run.saveCheckpoint(iteration, new FakePolicy(), 2)
      await run.close()
    }
    expect(await loggedIterations(at)).toEqual([7, 8])
    expect(await findLogDamage(at, { iteration: 8 })).toBeUndefined()
    expect(await findLogDamage(at, { iteration: 9 })).toBe("iteration 9 is missing")
  })
})

describe("the log of a cloning", () => {
  const text = (...lines: (readonly [iteration: number, epoch?: number])[]) =>
    lines
      .map(([iteration, epoch]) => ({ iteration, metrics: epoch === undefined ? {} : { "sft/epoch": epoch } }))
      .map((report) => JSON.stringify(report))
  const own = { fork: false }

  it("is checked a line at a time, so that other work can be done between two", () => {
    const lines = text([4, 1], [8, 2], [12, 3])
    expect([...logDamageInPieces(lines, own)]).toHaveLength(lines.length)
  })

  it("has one line per epoch, whose iterations are optimizer steps", () => {
    const whole = text([4, 1], [8, 2], [12, 3])
    expect(logDamage(whole, own)).toBeUndefined()
    expect(logDamage(whole, { ...own, upTo: { iteration: 14, epochs: 3 } })).toBeUndefined()
    expect(logDamage([], { ...own, upTo: { iteration: 2, epochs: 0 } })).toBeUndefined()
    expect(logDamage(text([4, 1], [12, 3]), own)).toMatch(/line 2 is of epoch 3, but epoch 2 is expected/)
    expect(logDamage(text([8, 2]), own)).toMatch(/line 1 is of epoch 2, but epoch 1 is expected/)
    expect(logDamage(text([4, 1]), { ...own, upTo: { iteration: 14, epochs: 3 } })).toBe("epochs 2 to 3 are missing")
    expect(logDamage([], { ...own, upTo: { iteration: 4, epochs: 1 } })).toBe("epoch 1 is missing")
  })

  it("is followed by iterations in a fork that trains", () => {
    const fork = text([4, 1], [8, 2], [9], [10])
    expect(logDamage(fork, { fork: true, upTo: { iteration: 10 } })).toBeUndefined()
    expect(logDamage(text([4, 1], [8, 2], [9], [11]), { fork: true })).toBe("iteration 10 is missing before line 4")
  })
})
