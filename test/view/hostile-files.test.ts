import { execFileSync } from "node:child_process"
import { appendFile, mkdtemp, open, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { logWarning } from "../../src/runs/check-metrics.ts"
import { formatRunConfig, readRunConfig } from "../../src/runs/config.ts"
import { loggedLines, readReports, reportOf } from "../../src/runs/metrics-log.ts"
import { describeRun, findRuns } from "../../src/view/runs.ts"
import { noEpisodes } from "../../src/view/serve/episode-reader.ts"
import { readNewestReports, readReportsSince } from "../../src/view/serve/report-log.ts"
import { runSource } from "../../src/view/serve/run-source.ts"
import { madeFolder, reportsOf } from "./run-folder.ts"

// Runs that another person made: configurations and logs that say anything.

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-hostile-runs-"))
})
afterEach(async () => await rm(folder, { recursive: true }))

const nested = (levels: number, inner: string) => `${'{"a":'.repeat(levels)}${inner}${"}".repeat(levels)}`

describe("a configuration of a run", () => {
  it.each([
    ["nested thousands deep", `{"gigpo":"1","x":${nested(5000, "1")}}`],
    ["of lists that are nested deep", `{"gigpo":"1","x":${"[".repeat(5000)}${"]".repeat(5000)}}`],
    ["with a key of a megabyte above many values", `{"gigpo":"1","${"k".repeat(2 ** 20)}":{"a":1,"b":2}}`],
    ["with hundreds of thousands of keys", `{"gigpo":"1",${Array.from({ length: 300_000 }, (_, i) => `"${i}":1`)}}`],
  ])("%s is named, and the other runs are listed", async (_, config) => {
    for (const name of ["good", "hostile", "last"]) await madeFolder(join(folder, name), {}, reportsOf(2))
    await writeFile(join(folder, "hostile", "config.json"), config)
    const found = await findRuns(folder)
    expect(found.map((one) => one.slice(folder.length + 1))).toEqual(["good", "hostile", "last"])
    await expect(describeRun(found[1]!)).rejects.toMatchObject({
      code: "RUN_CORRUPT",
      message: expect.stringMatching(/hostile\/config\.json is not a configuration that gigpo wrote/),
    })
    const source = await runSource([folder], noEpisodes, () => {})
    expect((await source.runs()).map(({ name }) => name)).toEqual(["good", "last"])
  })

  it("as a pipe, or larger than any, is rejected, and the other runs are listed", async () => {
    for (const name of ["good", "hostile"]) await madeFolder(join(folder, name), {}, reportsOf(2))
    const path = join(folder, "hostile", "config.json")
    await writeFile(path, `${formatRunConfig({})}${" ".repeat(17 * 2 ** 20)}`)
    await expect(readRunConfig(path)).rejects.toMatchObject({ code: "RUN_CORRUPT" })
    expect(await findRuns(folder)).toHaveLength(2)
    await rm(path)
    execFileSync("mkfifo", [path])
    await expect(readRunConfig(path)).rejects.toMatchObject({ code: "UNSAFE_PATH" })
    expect(await findRuns(folder)).toHaveLength(2)
  })
})

describe("a log", () => {
  const whole = (iteration: number) => `${JSON.stringify({ iteration, metrics: { a: iteration } })}\n`

  it.each<[string, string]>([
    ["metrics of text", '{"iteration":1,"metrics":{"episode/success":"x"}}'],
    ["an evaluation without its numbers", '{"iteration":1,"metrics":{},"evaluation":{}}'],
    ["a time that is an object", '{"iteration":1,"metrics":{},"time":{}}'],
    ["warnings of objects", '{"iteration":1,"metrics":{},"warnings":[{}]}'],
    ["deep nesting", `{"iteration":1,"metrics":{},"x":${nested(5000, "1")}}`],
    ["a line of megabytes", `{"iteration":1,"metrics":{},"x":"${"x".repeat(5 * 2 ** 20)}"}`],
  ])("with %s has no report in that line", (_, line) => {
    expect(reportOf(line)).toBeUndefined()
  })

  it("is read before and after a line of 300 MB, in little memory", { timeout: 120_000 }, async () => {
    const path = join(folder, "metrics.jsonl")
    await writeFile(path, whole(1))
    const file = await open(path, "a")
    for (let megabyte = 0; megabyte < 300; megabyte++) await file.write(Buffer.alloc(2 ** 20, 0x78))
    await file.close()
    const before = process.resourceUsage().maxRSS
    const first = await readReportsSince(path)
    expect(first.reports.map(({ iteration }) => iteration)).toEqual([1])
    expect(await readNewestReports(path)).toEqual([])
    expect((await readReports(path)).map(({ iteration }) => iteration)).toEqual([1])
    await appendFile(path, `\n${whole(2)}`)
    expect((await readReportsSince(path, first.cursor)).reports.map(({ iteration }) => iteration)).toEqual([2])
    expect((await readReports(path)).map(({ iteration }) => iteration)).toEqual([1, 2])
    expect((await readNewestReports(path)).map(({ iteration }) => iteration)).toEqual([2])
    let lines = 0
    for await (const line of loggedLines(path)) lines += Number(line.length < 100)
    expect(lines).toBe(3)
    expect(await logWarning(folder)).toMatch(/line 2 cannot be read/)
    expect((process.resourceUsage().maxRSS - before) / 1024).toBeLessThan(200)
  })

  it("is not read from a place that only a request names", async () => {
    const path = join(folder, "metrics.jsonl")
    await writeFile(path, `${"x".repeat(6 * 2 ** 20)}\n`)
    const { reset } = await readReportsSince(path, `${6 * 2 ** 20}.${6 * 2 ** 20}.0`)
    expect(reset).toBe(true)
  })
})
