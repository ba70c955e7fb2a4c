import { appendFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest"
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

  it("links open in new tabs, and the address of a view can be copied; only this browser has the key", async () => {
    const view = await openView([folder])
    onTestFinished(() => view.close())
    const { page, errors } = await opened(view.url)
    const [tab] = await Promise.all([
      page.context().waitForEvent("page"),
      page.click("nav a[data-view=settings]", { modifiers: ["ControlOrMeta"] }),
    ])
    await tab.waitForSelector("main .view.settings table")
    const copied = await page.context().newPage()
    await copied.goto(`${new URL(view.url).origin}/#/curves?smooth=0.5`)
    await copied.waitForSelector(".controls input[type=range]")
    // Scripts cannot read the key, and no request has the token in its address.
    expect(
      await page.evaluate("[document.cookie, JSON.stringify({ ...localStorage, ...sessionStorage })].join()"),
    ).toBe(",{}")
    const [cookie, ...others] = await page.context().cookies()
    expect(others).toEqual([])
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: "Strict", path: "/api/", expires: -1 })
    const stranger = await openPage(browser)
    onTestFinished(stranger.close)
    await stranger.page.goto(`${new URL(view.url).origin}/#/settings`)
    await stranger.page.waitForSelector("text=/This browser is not connected to gigpo view: open the address/")
    expect(errors).toEqual([])
  })

  it("browsers stay connected after a restart if they are remembered, and otherwise by the new address in the same tab", async () => {
    vi.stubEnv("GIGPO_STATE", join(folder, "state"))
    onTestFinished(() => void vi.unstubAllEnvs())
    const start = async (port: number, rememberBrowsers: boolean) => {
      const view = await openView([run()], { port, rememberBrowsers })
      onTestFinished(() => view.close())
      return view
    }
    for (const isRemembered of [true, false]) {
      const first = await start(0, isRemembered)
      const { page } = await opened(first.url)
      await first.close()
      const second = await start(Number(new URL(first.url).port), isRemembered)
      const [address, token] = second.url.split("?")
      expect(first.url).not.toContain(token)
      await page.goto(`${address}settings`)
      await page.reload()
      if (!isRemembered) {
        await page.waitForSelector("text=/This browser is not connected/")
        // Only the part after the # changes, which does not load the page.
        await page.evaluate((url) => location.assign(url), second.url)
      }
      await page.waitForSelector("main .view.settings, main .view.curves")
      expect(page.url()).not.toContain("token")
    }
  })

  it("a wrong token says what to do, and the right address works in the same tab", async () => {
    const view = await openView([folder])
    onTestFinished(() => view.close())
    const { page, errors, close } = await openPage(browser)
    onTestFinished(close)
    await page.goto(`${new URL(view.url).origin}/#/?token=wrong`)
    await page.waitForSelector(
      "text=/token in the address is not valid.*Open the address that gigpo view printed last/",
    )
    expect(page.url()).not.toContain("token")
    await page.evaluate((url) => location.assign(url), view.url)
    await page.waitForSelector("main .view.curves")
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
