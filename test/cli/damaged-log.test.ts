import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { madeFolder, reportsOf } from "../view/run-folder.ts"
import { built, gigpo } from "./gigpo.ts"

describe.skipIf(!built)("commands that read a damaged metrics.jsonl (needs dist: npm run build:ts)", () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-log-"))
    await madeFolder(join(folder, "whole"), {}, reportsOf(5))
    await madeFolder(join(folder, "damaged"), {}, reportsOf(5))
    const lines = reportsOf(5).map((report) => JSON.stringify(report))
    await writeFile(join(folder, "damaged", "metrics.jsonl"), `${lines.with(2, "garbage").join("\n")}\n`)
  })
  afterAll(async () => await rm(folder, { recursive: true }))

  it.each([
    [["runs"]],
    [["export", "--as", "csv", "--out", "out.csv", "--overwrite"]],
    [["export", "--as", "tensorboard", "--out", "out", "--overwrite"]],
    [["report", "--out", "report.html"]],
  ])("%s: a warning names the line, once", async ([command, ...flags]) => {
    const by = async (name: string) => await gigpo([command!, name, ...flags], { cwd: folder })
    const [whole, damaged] = [await by("whole"), await by("damaged")]
    expect(whole.code).toBe(0)
    expect(whole.stderr).not.toContain("damaged:")
    expect(damaged.code).toBe(0)
    const told = damaged.stderr.match(
      /metrics\.jsonl of the run in \S+ is damaged: line 3 cannot be read; iteration 3 is missing/g,
    )
    expect(told).toHaveLength(1)
  })
})
