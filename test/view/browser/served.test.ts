import { appendFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest"
import { newLock } from "../../../src/files/lock.ts"
import { type PageFile, readPage } from "../../../src/view/serve/page-files.ts"
import { writeReport } from "../../../src/view/serve/report.ts"
import { packPart, reportHtml } from "../../../src/view/serve/report-html.ts"
import { openView } from "../../../src/view/serve/view.ts"
import { madeReader } from "../made-reader.ts"
import { madeGroup } from "../made-run.ts"
import { madeFolder, reportsOf } from "../run-folder.ts"
import { noBrowser, openBrowser, openPage, showView } from "./page.ts"

describe.skipIf(noBrowser)(`what is served and reported (${noBrowser ?? "in Chromium"})`, () => {
  let browser: Browser
  let folder: string
  const run = () => join(folder, "runs", "one")
  const recorded = [1, 2, 3].map((iteration) => madeGroup(iteration, 0))
  const reports = reportsOf(9)
  beforeAll(async () => {
    browser = await openBrowser()
  })
  afterAll(() => browser?.close())
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-served-"))
    await madeFolder(run(), { training: { iterations: 9 } }, reports.slice(0, 3))
    await mkdir(join(run(), "episodes"))
    onTestFinished(() => rm(folder, { recursive: true }))
  })

  /** A page, and every address that it asks for. */
  async function opened(url: string) {
    const { page, errors, close } = await openPage(browser)
    onTestFinished(close)
    const asked: string[] = []
    page.on("request", (request) => asked.push(request.url()))
    await page.goto(url)
    await page.waitForSelector("main .view")
    return { page, errors, asked }
  }

  it("the page draws what a run has reported, follows it, and forgets the token's place in the address", async () => {
    await writeFile(join(run(), "run.lock"), newLock("x").text)
    const view = await openView(
      [folder],
      {},
      madeReader(() => recorded),
    )
    onTestFinished(() => view.close())
    const { page, errors, asked } = await opened(view.url)
    expect(page.url()).not.toContain("token")
    const shows = (iteration: number) => page.waitForSelector(`text=/iteration ${iteration}\\b|\\b${iteration} of 9/i`)
    await shows(3)
    await appendFile(
      join(run(), "metrics.jsonl"),
      `${JSON.stringify(reports[3])}\n${JSON.stringify(reports[4])}\n{"iter`,
    )
    await shows(5)
    await appendFile(join(run(), "metrics.jsonl"), `${JSON.stringify(reports[5]).slice(6)}\n`)
    await shows(6)
    await page.reload()
    await shows(6)
    expect(errors).toEqual([])
    expect(asked.every((url) => url.startsWith(new URL(view.url).origin) && !url.includes("gigpo-"))).toBe(true)
  })

  it("the page says what is the matter where its token is not the server's", async () => {
    const view = await openView([folder])
    onTestFinished(() => view.close())
    const { page, errors } = await openPage(browser)
    await page.goto(`${new URL(view.url).origin}/#/?token=wrong`)
    await page.waitForSelector("text=/open the one that gigpo view printed/")
    expect(errors.filter((error) => !error.includes("401"))).toEqual([])
  })

  it("the page says so where its server is there no more", async () => {
    await writeFile(join(run(), "run.lock"), newLock("x").text)
    const view = await openView([folder])
    const { page } = await opened(view.url)
    await view.close()
    await page.waitForSelector("text=/Update failed.*gigpo view does not answer/")
  })

  it("a report opens from a file, asks for nothing, and breaks no rule of its own policy", async () => {
    const path = join(folder, "report.html")
    await writeReport(
      [run()],
      path,
      {},
      madeReader(() => recorded),
    )
    const { page, errors, asked } = await opened(pathToFileURL(path).href)
    for (const name of ["curves", "episodes", "graph", "settings"]) {
      await showView(page, name)
    }
    expect(errors).toEqual([])
    expect(asked.filter((url) => !/^(blob|data):/.test(url))).toEqual([pathToFileURL(path).href])
    // Even if something in it would: the policy lets nothing out.
    const refused = await page.evaluate(() =>
      fetch("https://evil.example/").then(
        () => "went",
        () => "refused",
      ),
    )
    expect(refused).toBe("refused")
    expect(errors.join()).toMatch(/Content Security Policy/)
  })

  it("a report says which episodes can be read in it", async () => {
    const path = join(folder, "report.html")
    await writeReport(
      [run()],
      path,
      { episodes: 16 },
      madeReader(() => recorded),
    )
    const { page } = await opened(pathToFileURL(path).href)
    await page.click("text=2 of 3 groups of episodes are included in full")
    const links = page.locator("footer li a")
    expect(await links.allTextContents()).toEqual(["Iteration 1, group 0", "Iteration 3, group 0"])
    await links.nth(1).click()
    await page.waitForSelector("main .view.graph")
    expect(page.url()).toMatch(/#\/graph\/\w+\/3\/0$/)
  })

  it("a script that speaks of scripts, and data that do, stay what they are", async () => {
    const odd = "</script><!--<script>\u2028\ufeff\u0000]]>&amp;"
    const bytes = Buffer.from(
      `\ufeffconst odd = ${JSON.stringify(odd)};
document.title = [odd, /^<\\/script><!--$/.test("<" + "/script><" + "!--"), \`</SCRIPT><!--\`].join("|");
document.body.append(document.getElementById("data").textContent.trim())`,
    )
    const css = Buffer.from('body::after { content: "</style><!--"; color: rgb(1, 2, 3) }')
    const page = new Map<string, PageFile>([
      ...(await readPage()),
      ["main.js", { type: "", bytes }],
      ["main.css", { type: "", bytes: css }],
    ])
    const path = join(folder, "odd.html")
    const part = await packPart("runs", [odd])
    await writeFile(path, reportHtml(page, [part]))
    const tab = await openPage(browser)
    onTestFinished(tab.close)
    await tab.page.goto(pathToFileURL(path).href)
    expect(await tab.page.evaluate(`document.title`)).toContain("</script><!--<script>")
    expect(await tab.page.evaluate(`document.title`)).toMatch(/\|true\|<\/SCRIPT><!--$/)
    expect(await tab.page.evaluate(`getComputedStyle(document.body, "::after").content`)).toBe('"</style><!--"')
    expect(await tab.page.evaluate(`getComputedStyle(document.body, "::after").color`)).toBe("rgb(1, 2, 3)")
    expect(await tab.page.evaluate(`document.body.textContent.trim().endsWith("runs")`)).toBe(false)
    expect(await tab.page.evaluate(`document.body.lastChild.textContent`)).toBe(part)
    expect(tab.errors).toEqual([])
  })
})
