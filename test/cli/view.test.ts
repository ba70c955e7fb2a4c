import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { EpisodePage, RunInfo } from "../../src/view/data/source.ts"
import { plainGroups, record } from "../view/record/groups.ts"
import { madeFolder, reportsOf } from "../view/run-folder.ts"
import { built, gigpo } from "./gigpo.ts"

describe.skipIf(!built)("gigpo view and gigpo report (need dist: npm run build:ts)", () => {
  let folder: string
  const run = (...words: string[]) => gigpo(words, { cwd: folder })
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-view-cli-"))
    const one = await madeFolder(join(folder, "runs", "one"), { training: { iterations: 3 } }, reportsOf(3))
    await record(
      one,
      [1, 2, 3].map((iteration) => [iteration, plainGroups(4)]),
    )
    await mkdir(join(folder, "empty"))
  })
  afterAll(async () => await rm(folder, { recursive: true }))

  /** Shows runs until `use` is done with the page. */
  async function viewed(
    words: readonly string[],
    use: (url: URL, ask: (path: string) => Promise<unknown>) => Promise<void>,
  ) {
    let seen: Promise<void> | undefined
    const outcome = await gigpo(["view", ...words], {
      cwd: folder,
      onOutput(stdout, kill) {
        if (seen || !stdout.includes("\n")) return
        const url = new URL(stdout.split("\n")[0]!)
        const headers = { authorization: `Bearer ${url.hash.split("=")[1]}` }
        const ask = async (path: string) => await (await fetch(new URL(path, url.origin), { headers })).json()
        seen = use(url, ask).finally(() => kill("SIGINT"))
      },
    })
    await seen
    return outcome
  }

  it("prints the address with its token, shows the runs there, and ends with Ctrl-C", async () => {
    let address = ""
    const { code, stdout, stderr } = await viewed(["runs", "--port", "0"], async (url, ask) => {
      address = url.href
      expect((await fetch(url.origin)).headers.get("content-type")).toBe("text/html; charset=utf-8")
      expect((await fetch(new URL("/api/runs", url.origin))).status).toBe(401)
      const [one] = (await ask("/api/runs")) as [RunInfo]
      expect(one).toMatchObject({ name: "one", state: "done", iteration: 3, iterations: 3 })
      const episodes = (await ask(`/api/runs/${one.id}/episodes`)) as EpisodePage
      expect(episodes).toMatchObject({ iteration: { length: 24 }, tasks: { length: 4 } })
      const first = await ask(`/api/runs/${one.id}/episodes/1/0`)
      expect(first).toMatchObject({ episodes: [{ steps: [{ anchor: "a", completion: expect.any(Array) }, {}] }, {}] })
    })
    expect({ code, stdout, stderr }).toEqual({
      ...{ code: 0, stdout: `${address}\n` },
      stderr: "Open this address in a browser; Ctrl-C stops the server.\n",
    })
    expect(address).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/#\/\?token=gigpo-[\w-]{43}$/)
  })

  it("shows the runs in runs/ where none is named", async () => {
    const { code } = await viewed(["--port", "0"], async (_, ask) => {
      expect(await ask("/api/runs")).toMatchObject([{ name: "one" }])
    })
    expect(code).toBe(0)
    const elsewhere = await gigpo(["view"], { cwd: join(folder, "empty") })
    expect(elsewhere).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^gigpo: There are no runs in this folder or below it\. Give another folder/),
    })
  })

  it("rejects what cannot be shown, and says what can", async () => {
    const refused = async (code: number, message: RegExp, ...words: string[]) =>
      expect(await run(...words)).toEqual({ code, stdout: "", stderr: expect.stringMatching(message) })
    for (const command of [["view"], ["report", "--out", "x.html"]]) {
      await refused(2, /^gigpo: none does not exist .*give the folder of a run.* \[BAD_ARGUMENT\]/, ...command, "none")
      await refused(2, /^gigpo: There is no run in empty, .*Give the folder of a run/, ...command, "runs", "empty")
    }
    await refused(2, /from 0 to 65535/, "view", "runs", "--port", "65536")
    await refused(2, /required option '-o, --out <file>'/, "report", "runs")
    await refused(2, /runs is a folder: give the name of a file.* \[FILE_EXISTS\]/, "report", "runs", "--out", "runs")
    await refused(2, /There is no folder .*none for the report: create it/, "report", "runs", "--out", "none/x.html")
    await writeFile(join(folder, "mine.html"), "<!doctype html>mine")
    await refused(
      2,
      /mine\.html exists and is not a report of gigpo.*--overwrite/,
      "report",
      "runs",
      "--out",
      "mine.html",
    )
    expect(await readFile(join(folder, "mine.html"), "utf8")).toBe("<!doctype html>mine")
    await refused(4, /Cannot create files in \/proc.* \[IO\]/, "report", "runs", "--out", "/proc/x.html")
  })

  it("says that a port is taken", async () => {
    await viewed(["runs/one", "-p", "0"], async (url) => {
      expect(await run("view", "runs", "--port", url.port)).toMatchObject({
        ...{ code: 4, stdout: "" },
        stderr: expect.stringMatching(/Cannot listen on 127\.0\.0\.1:\d+ .*try another port, or 0 for any\. \[IO\]/),
      })
    })
  })

  it("writes a report, and a newer one in its place", async () => {
    const path = join(folder, "report.html")
    for (const [words, held] of [
      [[], /^1 run, 12 of 12 groups of episodes complete, 0\.\d\d MB\.\n$/],
      [["--episodes", "4"], /^1 run, 2 of 12 groups of episodes complete/],
    ] as const) {
      const { code, stdout, stderr } = await run("report", "runs/one", "--out", "report.html", ...words)
      expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: `${path}\n`, stderr: expect.stringMatching(held) })
      expect(await readFile(path, "utf8")).toMatch(/^<!doctype html>/)
    }
  })

  it("says of a report that no episodes were recorded", async () => {
    await rm(join(folder, "runs/one/episodes"), { recursive: true })
    const { stderr } = await run("report", "runs/one", "--out", "report.html")
    expect(stderr).toMatch(/^1 run, no recorded episodes, 0\.\d\d MB\.\n$/)
  })

  it("explains itself", async () => {
    expect((await run("view", "--help")).stdout).toMatch(/runs\.\.\..*--host <address>.*--port <number>.*--allow-host/s)
    expect((await run("report", "--help")).stdout).toMatch(/--out <file>.*--episodes.*--max-size.*--overwrite/s)
    expect((await run("--help")).stdout).toMatch(/view .*show runs.*report .*write runs/s)
  })
})
