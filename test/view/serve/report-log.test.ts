import { appendFile, mkdtemp, rename, rm, truncate, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { readReports } from "../../../src/runs/metrics-log.ts"
import type { IterationReport } from "../../../src/runs/report.ts"
import { Random } from "../../../src/util/random.ts"
import { readNewestReports, readReportsSince } from "../../../src/view/serve/report-log.ts"
import { reportsOf } from "../run-folder.ts"

let folder: string
let path: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-log-"))
  path = join(folder, "metrics.jsonl")
})
afterEach(async () => await rm(folder, { recursive: true }))

const line = (report: IterationReport) => `${JSON.stringify(report)}\n`
const text = (reports: readonly IterationReport[]) => reports.map(line).join("")

describe("what was reported since", () => {
  it("is what is new, and a line that is not finished waits", async () => {
    const [one, two, three] = reportsOf(3) as [IterationReport, IterationReport, IterationReport]
    await writeFile(path, text([one]) + line(two).slice(0, 40))
    const first = await readReportsSince(path)
    expect(first).toMatchObject({ reset: true, reports: [one] })
    expect(await readReportsSince(path, first.cursor)).toEqual({ cursor: first.cursor, reset: false, reports: [] })
    await appendFile(path, line(two).slice(40) + line(three))
    expect(await readReportsSince(path, first.cursor)).toMatchObject({ reset: false, reports: [two, three] })
  })

  it("is everything where the file was cut back, replaced, or grew again past the same place", async () => {
    const reports = reportsOf(6)
    const other = reports.map((report) => ({ ...report, time: report.time!.replace("2026", "2027") }))
    await writeFile(path, text(reports.slice(0, 4)))
    const { cursor } = await readReportsSince(path)
    for (const now of [reports.slice(0, 2), other, [...reports.slice(0, 2), ...other.slice(2)], []]) {
      await writeFile(path, text(now))
      expect(await readReportsSince(path, cursor)).toMatchObject({ reset: true, reports: now })
    }
    await rm(path)
    expect(await readReportsSince(path, cursor)).toMatchObject({ reset: true, reports: [] })
  })

  it("is everything for whoever brings a cursor that was never given", async () => {
    await writeFile(path, text(reportsOf(2)))
    const { cursor } = await readReportsSince(path)
    const wrong = [
      "",
      "x",
      "-1.0",
      "1e9.0",
      "99999999999999999.0",
      `${cursor}0`,
      "9007199254740991.0",
      "NaN",
      "0",
      "1.5.2",
    ]
    for (const one of wrong) expect([one, (await readReportsSince(path, one)).reset]).toEqual([one, true])
  })

  it("leaves out what is no report", async () => {
    const [one, two] = reportsOf(2) as [IterationReport, IterationReport]
    const odd = [
      "",
      "{",
      "null",
      "[]",
      '{"iteration":"1","metrics":{}}',
      '{"iteration":1}',
      '{"iteration":1,"metrics":null}',
      "\ufeff{}",
    ]
    await writeFile(path, `${odd.join("\n")}\n${line(one)}${odd.join("\r\n")}\n${line(two)}`)
    expect((await readReportsSince(path)).reports).toEqual([one, two])
  })

  it("comes whole where a line is longer than what is read at once", async () => {
    const [one, two] = reportsOf(2) as [IterationReport, IterationReport]
    const long = { ...one, failures: [{ message: "ü".repeat(1_500_000), count: 1 }] } as unknown as IterationReport
    await writeFile(path, text([long, two]))
    const { reports, cursor } = await readReportsSince(path)
    expect(reports).toEqual([long, two])
    expect(await readReportsSince(path, cursor)).toEqual({ cursor, reset: false, reports: [] })
    expect(await readNewestReports(path)).toEqual([two])
    await writeFile(path, text([two, long]))
    expect(await readNewestReports(path)).toEqual([two, long]) // it goes back as far as it must
  })

  // A run that goes on, is killed, resumed, amended and begun anew, watched by somebody who asks now and then.
  it.each(Array.from({ length: 24 }, (_, seed) => seed))(
    "is such that whoever adds it up holds the file (%i)",
    async (seed) => {
      const random = new Random(seed)
      let [kept, clock, half, file] = [[] as IterationReport[], 0, "", ""]
      const make = (): IterationReport => ({
        iteration: kept.length + 1,
        time: new Date(clock++).toISOString(),
        metrics: { "loss/policy": random.below(3), ...(random.below(9) === 0 && { pad: Number("1".repeat(300)) }) },
        ...(random.below(6) === 0 && { stopped: "ä…".repeat(random.below(9000)) }),
      })
      const put = async () => {
        file = text(kept) + half
        if (random.below(2) === 0) return await writeFile(path, file)
        await writeFile(`${path}.tmp`, file)
        await rename(`${path}.tmp`, path)
      }
      await put()
      let [held, cursor] = [[] as IterationReport[], undefined as string | undefined]
      for (let turn = 0; turn < 60; turn++) {
        const action = random.below(10)
        if (action < 5) {
          // appended, perhaps in two writes
          const report = make()
          kept.push(report)
          const rest = line(report)
          const cut = random.below(rest.length)
          await truncate(path, Buffer.byteLength(text(kept.slice(0, -1)))) // what was left is written over
          await appendFile(path, rest.slice(0, cut))
          if (random.below(2) === 0) held = await ask(held)
          await appendFile(path, rest.slice(cut))
          half = ""
        } else if (action === 5 && half === "") {
          half = line(make()).slice(0, 30) // killed while writing
          await appendFile(path, half)
        } else if (action === 6) {
          kept = kept.slice(0, random.below(kept.length + 1))
          half = ""
          if (random.below(2) === 0) await put()
          else await truncate(path, Buffer.byteLength(text(kept)))
        } else if (action === 7) {
          const last = kept.pop()
          if (last) kept.push({ ...last, time: new Date(clock++).toISOString() })
          half = ""
          await put()
        } else if (action === 8 && random.below(3) === 0) {
          kept = []
          half = ""
          await put()
        }
        if (random.below(3) > 0) {
          held = await ask(held)
          expect(held).toEqual(await readReports(path))
        }
      }
      expect(await ask(held)).toEqual(kept)

      async function ask(before: readonly IterationReport[]): Promise<IterationReport[]> {
        const page = await readReportsSince(path, cursor)
        cursor = page.cursor
        return [...(page.reset ? [] : before), ...page.reports]
      }
    },
  )
})
