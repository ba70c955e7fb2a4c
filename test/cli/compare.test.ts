import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type BenchmarkEvaluation, writeEvaluation } from "../../src/benchmark/evaluation-file.ts"
import { changed, type Made, madeEvaluation } from "../benchmark/made.ts"
import { built, gigpo } from "./gigpo.ts"

describe.skipIf(!built)("gigpo compare (needs dist: npm run build:ts)", () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-compare-"))
    const tasks = (succeeds: (task: number) => boolean) =>
      Array.from({ length: 40 }, (_, task): Made[] => [succeeds(task)])
    const files: Record<string, BenchmarkEvaluation> = {
      a: madeEvaluation(tasks((task) => task % 4 > 0)),
      b: madeEvaluation(tasks((task) => task < 20)),
      c: madeEvaluation(
        tasks(() => true).map(() => ["failed", true, true]),
        { settings: { temperature: 0, environment: { history: 2 } }, model: { name: "\u001b[31mred" } },
      ),
      other: madeEvaluation([[true]], { benchmark: "doors@2" }),
      silent: changed(madeEvaluation([[true]]), () => ({ metrics: {}, success: false })),
    }
    for (const [name, evaluation] of Object.entries(files)) await writeEvaluation(join(folder, name), evaluation)
  })
  afterAll(async () => await rm(folder, { recursive: true, force: true }))
  const compare = (...words: string[]) => gigpo(["compare", ...words], { cwd: folder })

  it("reports which model solves more tasks, and the significance", async () => {
    const { code, stdout, stderr } = await compare("a", "b")
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
    expect(stdout).toBe(`doors@1, 40 tasks
  A  a: runs/a/model
  B  b: runs/a/model

         A                            B                          A - B
success  75.0 % (59.8 % to 85.8 %)    50.0 % (35.2 % to 64.8 %)  +25.0 (+3.6 to +46.4)
  heat   100.0 % (83.9 % to 100.0 %)  50.0 % (29.9 % to 70.1 %)  +50.0 (+26.0 to +74.0)
  place  50.0 % (29.9 % to 70.1 %)    50.0 % (29.9 % to 70.1 %)  0.0 (-34.0 to +34.0)
return   7.5 (6.1 to 8.9)             5 (3.38 to 6.62)           +2.5 (+0.358 to +4.64)
steps    3.5 (3.22 to 3.78)           4 (3.68 to 4.32)           -0.5 (-0.928 to -0.0715)

In parentheses: 95 % intervals over tasks; for differences by Student's t, paired by task.
Tasks solved by A alone: 15, by B alone: 5; p = 0.0414 by McNemar's exact test.
Only A ever solved: task 21, task 22, task 23, task 25, task 26, and 10 more (--json)
Only B ever solved: task 0, task 4, task 8, task 12, task 16
`)
  })

  it("compares the first with each of the others, and lists different settings", async () => {
    const { stdout } = await compare("a", "b", "c")
    expect(stdout.match(/^doors@1/gm)).toHaveLength(2)
    expect(stdout).toContain(
      "Different setting: repeats (1 and 3).\nDifferent setting: temperature (0.4 and 0).\nFailed or excluded episodes: 0 and 40.",
    )
    expect(stdout).toContain("  B  c: \\x1b[31mred\n")
    expect(stdout).toMatch(
      /Tasks solved more often by A alone: 30, by B alone: 10; p = 0\.00222 by the exact sign test/,
    )
  })

  it("prints each comparison as a JSON line", async () => {
    const { stdout } = await compare("--json", "a", "b", "c")
    const lines = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line))
    expect(lines).toMatchObject([
      { first: { file: "a" }, second: { file: "b" }, benchmark: "doors@1", success: { test: { name: "McNemar" } } },
      { first: { file: "a" }, second: { file: "c" }, differing: [{ name: "repeats" }, { name: "temperature" }] },
    ])
    expect(lines[0].success.onlyFirst).toHaveLength(15)
  })

  it("reports missing success metrics", async () => {
    const { stdout } = await compare("silent", "silent")
    expect(stdout).toContain("The environment reports no success.")
    expect(stdout).toMatch(/^return +10 +10 +0$/m)
  })

  it.each([
    [["a", "other"], /different benchmarks: doors@1 and doors@2/],
    [["a"], /Only one evaluation was given/],
    [["a", "none"], /none/],
  ])("rejects %j", async (files, message) => {
    const { code, stdout, stderr } = await compare(...files)
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" })
    expect(stderr).toMatch(message)
  })
})
