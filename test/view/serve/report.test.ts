import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { gunzipSync } from "node:zlib"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import type { IterationReport } from "../../../src/runs/report.ts"
import { GigpoError } from "../../../src/util/errors.ts"
import type { RecordedGroup } from "../../../src/view/data/recorded.ts"
import type { EpisodeReader } from "../../../src/view/serve/episode-reader.ts"
import { readPage } from "../../../src/view/serve/page-files.ts"
import { type WriteReportOptions, writeReport } from "../../../src/view/serve/report.ts"
import { reportHtml } from "../../../src/view/serve/report-html.ts"
import { noBrowser } from "../browser/page.ts"
import { madeReader } from "../made-reader.ts"
import { madeGroup } from "../made-run.ts"
import { madeFolder, reportsOf } from "../run-folder.ts"

/** What stands in a report, by its name. */
async function readParts(path: string): Promise<Map<string, unknown>> {
  const [, data = ""] =
    /<script id="data" type="text\/plain">\n([^<]*)\n<\/script>/.exec(await readFile(path, "utf8")) ?? []
  const lines = data.split("\n").map((line) => line.split(" ") as [string, string])
  return new Map(lines.map(([name, packed]) => [name, JSON.parse(String(gunzipSync(Buffer.from(packed, "base64"))))]))
}

describe.skipIf(noBrowser?.includes("dist"))("a report (needs dist: npm run build:ts)", () => {
  let folder: string
  let out: string
  let recorded: RecordedGroup[]
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-report-"))
    out = join(folder, "report.html")
    recorded = Array.from({ length: 20 }, (_, at) => [0, 1, 2].map((group) => madeGroup(at + 1, group))).flat()
    await madeFolder(join(folder, "runs", "one"), { apiKey: "hidden" }, reportsOf(20))
    await mkdir(join(folder, "runs", "one", "episodes"))
  })
  afterEach(async () => await rm(folder, { recursive: true }))
  const write = (options: WriteReportOptions = {}, runs = [join(folder, "runs")]) =>
    writeReport(
      runs,
      out,
      options,
      madeReader(() => recorded),
    )
  const base = async () => Buffer.byteLength(reportHtml(await readPage(), []))
  const groupNames = (parts: Map<string, unknown>) => [...parts.keys()].filter((name) => name.startsWith("group/"))

  it("goes without an iteration that cannot be read, and says so once", async () => {
    const whole = madeReader(() => recorded.filter(({ iteration }) => iteration > 1))
    const broken = new GigpoError("RUN_CORRUPT", "iteration-1.episodes cannot be read. Remove it.")
    const reader: EpisodeReader = {
      ...whole,
      async readRecordedIterations(run, range = {}) {
        range.onUnreadable?.(broken, 1)
        return await whole.readRecordedIterations(run, range)
      },
      async *readEpisodes(run, range) {
        range.onUnreadable?.(broken, 1)
        yield* whole.readEpisodes(run, range)
      },
    }
    const told: string[] = []
    const written = await writeReport(
      [join(folder, "runs")],
      out,
      { onWarning: (message) => told.push(message) },
      reader,
    )
    expect([written.groups, written.recorded]).toEqual([57, 57])
    expect(told).toEqual([broken.message])
  })

  it("holds all that is known of its runs, and nothing that is secret", async () => {
    await madeFolder(join(folder, "runs", "two"), {}, [])
    const told: number[] = []
    const written = await write({ onProgress: (groups) => told.push(groups) })
    const parts = await readParts(out)
    const [one, two] = parts.get("runs") as { id: string; settings: object }[]
    expect(one).toMatchObject({ name: "one", iteration: 20, settings: { apiKey: "[redacted]" } })
    expect(parts.get(`reports/${one!.id}`)).toMatchObject({ reports: reportsOf(20) })
    expect(parts.get(`reports/${two!.id}`)).toMatchObject({ reports: [] })
    expect(parts.get(`episodes/${one!.id}`)).toMatchObject({ group: { length: 480 } })
    expect(groupNames(parts)).toHaveLength(120) // the made reader has the same episodes for both
    expect(parts.get(`group/${one!.id}/7/2`)).toMatchObject({ iteration: 7, group: 2, episodes: { length: 8 } })
    expect(written).toEqual({ path: out, bytes: (await readFile(out)).length, runs: 2, groups: 120, recorded: 120 })
    expect(told).toEqual(Array.from({ length: 120 }, (_, at) => at + 1))
    expect(await readdir(folder)).toEqual(["report.html", "runs"])
  })

  it("reads each iteration once, and says how far it is", async () => {
    const plain = madeReader(() => recorded)
    let groups = 0
    const reader: EpisodeReader = {
      ...plain,
      readGroup(...about) {
        groups++
        return plain.readGroup(...about)
      },
    }
    const told: [number, number][] = []
    const onRead = (...about: [number, number]) => told.push(about)
    expect((await writeReport([join(folder, "runs")], out, { onRead }, reader)).groups).toBe(60)
    expect([groups, told]).toEqual([0, Array.from({ length: 20 }, (_, at) => [at + 1, 20])])
    // Groups beyond what is kept in memory are read again.
    const room = (await base()) + 40_000
    const { groups: written } = await writeReport([join(folder, "runs")], out, { maxSize: room / 1e6 }, reader)
    expect(written).toBeGreaterThan(20)
  })

  it("has as many reports as fit in much of its size, with those that say most", async () => {
    const reports = reportsOf(4000).map((report, at) => (at === 1234 ? { ...report, warnings: ["odd"] } : report))
    await madeFolder(join(folder, "runs", "one"), {}, reports)
    const room = (await base()) + 60_000
    const { iterations, bytes } = await write({ maxSize: room / 1e6, episodes: 0 })
    expect(bytes).toBeLessThanOrEqual(room)
    const parts = await readParts(out)
    const [{ id }] = parts.get("runs") as [{ id: string }]
    const { reports: kept } = parts.get(`reports/${id}`) as { reports: IterationReport[] }
    expect(iterations).toEqual({ shown: kept.length, all: 4000 })
    expect(parts.get("made")).toMatchObject({ iterations })
    expect(kept.length).toBeGreaterThan(100)
    expect(kept.map(({ iteration }) => iteration)).toEqual(expect.arrayContaining([1, 1235, 4000]))
    expect(kept.filter(({ evaluation }) => evaluation).length / kept.length).toBeCloseTo(0.5, 1)
    expect((await write({ episodes: 0, maxSize: 50 })).iterations).toBeUndefined()
  })

  it("has no more bytes than it may, and what tells most of what there is room for", async () => {
    const room = (await base()) + 60_000
    const { bytes, groups } = await write({ maxSize: room / 1e6 })
    expect(bytes).toBeLessThanOrEqual(room)
    expect(room - bytes).toBeLessThan(6000) // there was no room for one more
    const names = groupNames(await readParts(out))
    expect(names).toHaveLength(groups)
    const iterations = names.map((name) => Number(name.split("/")[2]))
    expect(iterations).toEqual(expect.arrayContaining([1, 20, 10, 5, 15]))
  })

  it("holds as many episodes whole as were asked for", async () => {
    expect((await write({ episodes: 0 })).groups).toBe(0)
    expect((await write({ episodes: 17 })).groups).toBe(2)
    const parts = groupNames(await readParts(out)).map((name) => name.split("/")[2])
    expect(parts).toEqual(["1", "20"])
  })

  it("is rejected where it would not fit, before anything is written", async () => {
    const refused = write({ maxSize: ((await base()) + 500) / 1e6 })
    await expect(refused).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: /MB that the report may have\. Increase --max-size/,
    })
    expect(await readdir(folder)).toEqual(["runs"])
  })

  it("takes the place of an older one, and of nothing else unless that is said", async () => {
    await write()
    const { bytes } = await write({ episodes: 0 })
    expect((await readFile(out)).length).toBe(bytes)
    await writeFile(out, "mine")
    await expect(write()).rejects.toMatchObject({ code: "FILE_EXISTS", message: /is not a report of gigpo/ })
    expect(await readFile(out, "utf8")).toBe("mine")
    await write({ overwrite: true, episodes: 0 })
    expect((await readFile(out)).length).toBe(bytes)
  })

  it("goes where a file can be, and is whole or not there", async () => {
    await mkdir(join(folder, "taken"))
    const to = (path: string) => writeReport([join(folder, "runs")], join(folder, path), { overwrite: true })
    await expect(to("taken")).rejects.toMatchObject({ code: "FILE_EXISTS", message: /is a folder/ })
    await expect(to("none/report.html")).rejects.toMatchObject({ code: "BAD_ARGUMENT", message: /There is no folder/ })
    await expect(to("runs/one/config.json/x")).rejects.toMatchObject({ code: "BAD_ARGUMENT" })
    await expect(write({}, [join(folder, "none")])).rejects.toMatchObject({ code: "BAD_ARGUMENT" })
    await expect(write({ maxSize: 0 })).rejects.toMatchObject({ code: "BAD_ARGUMENT" })
    await expect(write({ episodes: -1 })).rejects.toMatchObject({ code: "BAD_ARGUMENT" })
    await expect(write({ episode: 1 } as object)).rejects.toMatchObject({ code: "BAD_ARGUMENT", message: /episodes/ })
    const controller = new AbortController()
    const stopped = write({ signal: controller.signal, onProgress: () => controller.abort(new Error("stopped")) })
    await expect(stopped).rejects.toThrow("stopped")
    expect(await readdir(folder)).toEqual(["runs", "taken"])
  })
})
