import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Inlined } from "../../../src/view/data/inlined.ts"
import { madeReports } from "../made-reports.ts"
import { madeRun } from "../made-run.ts"
import { expectAccessible, tabTo } from "./accessible.ts"
import { noBrowser, openBrowser, openInlined, openServed } from "./page.ts"

/** A run of a sweep: it ends with a success that is set. */
function runOf(omega: number, seed: number, success: number): Inlined["runs"][number] {
  const id = `${omega}s${seed}`
  const { info: made, ...run } = madeRun(id, 1, 1)
  const info = { ...made, name: `omega${omega}/seed${seed}`, settings: { seed, "training.estimator.omega": omega } }
  const reports = Array.from({ length: 10 }, (_, at) => ({
    iteration: at + 1,
    metrics: { "episode/success": at < 5 ? 0 : success, "policy/entropy": 1 / (omega + 1) },
  }))
  return { ...run, info, reports: { ...run.reports, run: info, reports } }
}
const sweep = [0, 1].flatMap((omega) => [1, 2, 10].map((seed) => runOf(omega, seed, omega / 2 + seed / 40)))

describe.skipIf(noBrowser)(`the table of runs (${noBrowser ?? "in Chromium"})`, () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await openBrowser()
  })
  afterAll(() => browser?.close())

  const opened = (runs: readonly Inlined["runs"][number][] = sweep, hash = "#/runs", width = 1280) =>
    openInlined(browser, { runs }, { hash, width })
  const names = (page: Page) => page.locator(".view.runs tbody th a").allTextContents()
  const column = async (page: Page, name: string) => {
    const heads = await page.locator(".view.runs thead th").allTextContents()
    const cells = page.locator(`.view.runs tbody tr > :nth-child(${heads.indexOf(name) + 1})`)
    return await cells.evaluateAll((all) => all.map((cell) => cell.firstChild?.textContent))
  }

  it("has every run with its numbers, in the order of a column", async () => {
    const { page, errors, close } = await opened()
    expect(await names(page)).toEqual(sweep.map(({ info }) => info.name))
    await expect.poll(() => column(page, "Success")).toEqual(["2.5 %", "5.0 %", "25.0 %", "52.5 %", "55.0 %", "75.0 %"])
    expect(await column(page, "Entropy")).toEqual(["1", "1", "1", "0.5", "0.5", "0.5"])
    expect(await page.locator(".view.runs tbody .note").allTextContents()).toContain("+25.0 points")
    await page.getByRole("button", { name: "Success", exact: true }).click()
    expect((await names(page))[0]).toBe("omega1/seed10")
    expect(await page.locator("[aria-sort=descending]").textContent()).toBe("Success")
    await page.getByRole("button", { name: "Success", exact: true }).click()
    expect((await names(page))[0]).toBe("omega0/seed1")
    await page.reload()
    await expect.poll(async () => (await names(page))[5]).toBe("omega1/seed10")
    expect(errors).toEqual([])
    await close()
  })

  it("is searched by name and setting", async () => {
    const { page, close } = await opened()
    const search = page.getByLabel("Find")
    await search.fill("omega=1 seed1")
    expect(await names(page)).toEqual(["omega1/seed1", "omega1/seed10"])
    expect(await page.textContent(".view.runs output")).toBe("2 of 6 runs, 6 shown")
    await search.fill("seed=10")
    expect(await names(page)).toEqual(["omega0/seed10", "omega1/seed10"])
    await close()
  })

  it("averages over seeds, with an interval", async () => {
    const { page, close } = await opened()
    await page.getByLabel("Group seeds").check()
    const heads = async () =>
      (await page.locator(".view.runs tr.group").allInnerTexts()).map((text) => text.replace(/\s+/g, " ").trim())
    // Means of 2.5, 5 and 25 %; standard deviation 12.3; t of two degrees of freedom 4.303.
    await expect
      .poll(heads)
      .toEqual(["omega = 0 3 seeds 10.8 % ± 30.6 % (95 %)", "omega = 1 3 seeds 60.8 % ± 30.6 % (95 %)"])
    await page.getByRole("button", { name: "Success", exact: true }).click()
    expect(await names(page)).toEqual([
      "omega1/seed10",
      "omega1/seed2",
      "omega1/seed1",
      "omega0/seed10",
      "omega0/seed2",
      "omega0/seed1",
    ])
    await close()
  })

  it("chooses the runs that are compared, and opens one", async () => {
    const { page, close } = await opened()
    await page.getByLabel("Find").fill("omega=0")
    await page.getByRole("button", { name: "Show none of them" }).click()
    expect(await page.textContent(".view.runs output")).toBe("3 of 6 runs, 3 shown")
    await tabTo(page, '[data-run="0s10"] input')
    await page.keyboard.press("Space")
    expect(await page.textContent(".view.runs output")).toBe("3 of 6 runs, 4 shown")
    expect(await page.evaluate("document.activeElement.closest('[data-run]').dataset.run")).toBe("0s10")
    await page.getByRole("link", { name: "omega0/seed2" }).click()
    await page.locator(".view.curves .overview").getByText("Success rose from 0.0 % to 5.0 %").waitFor()
    expect(await page.locator(".run-list :checked").count()).toBe(1)
    await close()
  })

  it("holds a hundred runs; the list above has those that are shown", async () => {
    const runs = Array.from({ length: 100 }, (_, at) => runOf(at, 1, at / 100))
    const { page, errors, close } = await opened(runs)
    expect(await page.locator(".view.runs tbody tr").count()).toBe(100)
    expect(await page.locator(".run-list li:visible").count()).toBe(9)
    expect(await page.getByText("Group seeds").isVisible()).toBe(false)
    expect(await page.getByRole("link", { name: "8 of 100 runs are shown" }).getAttribute("href")).toBe("#/runs")
    await expect.poll(async () => (await column(page, "Success"))[99], { timeout: 20_000 }).toBe("99.0 %")
    await page.getByRole("button", { name: "Show all found" }).click()
    expect(await page.textContent(".view.runs output")).toBe("100 of 100 runs, 100 shown")
    expect(errors).toEqual([])
    await close()
  })

  it("is not offered for one run", async () => {
    const { page, close } = await opened([sweep[0]!], "#/curves")
    expect(await page.locator("nav a:visible").allTextContents()).toEqual(["Curves", "Episodes", "States", "Settings"])
    await close()
  })

  it.each([1280, 390])("is accessible, and no wider than the page of %i pixels", async (width) => {
    const { page, close } = await opened(sweep, "#/runs?seeds=", width)
    await page.waitForSelector(".view.runs .spark")
    await expectAccessible(page)
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(width)
    await close()
  })

  it("has names that can be read on a phone, with state and problem under them", async () => {
    const runs = sweep.map((run) => {
      const reports = run.reports.reports.map((one) => ({ ...one, metrics: { ...one.metrics, "action/valid": 0.5 } }))
      const info = { ...run.info, name: `a-long-folder-of-runs/${run.info.name}` }
      return { ...run, info, reports: { ...run.reports, run: info, reports } }
    })
    const { page, close } = await opened(runs, "#/runs", 390)
    await page.waitForSelector(".view.runs .problem")
    const cell = page.locator(".view.runs tbody th").first()
    expect((await cell.boundingBox())!.width).toBeGreaterThanOrEqual(200)
    expect(await cell.innerText()).toMatch(/done · 1 of 1\n50\.0 % of the actions are invalid/)
    expect(await page.locator("td.state").first().isVisible()).toBe(false)
    await close()
  })

  it("marks a run whose folder is removed, and keeps its curves", async () => {
    const { info, reports } = sweep[0]!
    let infos = [info, sweep[1]!.info]
    const { page, errors, close } = await openServed(browser, (path) => {
      if (path === "runs") return infos
      return path.endsWith("overview") ? undefined : reports
    })
    await page.waitForSelector("canvas")
    infos = [infos[1]!]
    await page.waitForSelector(".run-list [data-state=deleted]", { timeout: 20_000 })
    expect(await page.locator(".run-list [data-state=deleted] .state").textContent()).toMatch(/^deleted · /)
    expect(await page.locator("canvas").count()).toBeGreaterThan(0)
    expect(errors).toEqual([])
    await close()
  })
})

describe.skipIf(noBrowser)(`the overview of a run (${noBrowser ?? "in Chromium"})`, () => {
  it("has its numbers, says what is wrong, and colours nothing else", async () => {
    const browser = await openBrowser()
    const text = "The entropy of the sampled tokens is 0.002 (policy/entropy), below its bound. Add an entropy bonus."
    const reports = madeReports(30, 0).map((report, at) => ({
      ...report,
      metrics: { ...report.metrics, "group/constant": 0.8 },
      ...(at === 12 && { warnings: [text] }),
    }))
    const run = madeRun("0", 1, 1)
    const { page, errors, close } = await openInlined(browser, {
      runs: [{ ...run, reports: { ...run.reports, reports } }],
    })
    const overview = page.getByRole("region", { name: "Overview" })
    await overview.getByText("80.0 % of the groups gave no signal").waitFor()
    const tiles = await overview
      .locator(".tile")
      .evaluateAll((all) => all.map((tile) => tile.getAttribute("data-tile")))
    expect(tiles).toEqual(["success", "evaluation", "entropy", "constant", "valid", "truncated", "failed", "time"])
    expect(
      await overview.locator(".tile.wrong").evaluateAll((all) => all.map((tile) => tile.getAttribute("data-tile"))),
    ).toEqual(["constant"])
    expect(await overview.locator(".tile .spark path").count()).toBe(8)
    await overview.getByText("Warnings of the guards").click()
    expect(await overview.locator("details li").allTextContents()).toEqual([`Iteration 13: ${text}`])
    expect(errors).toEqual([])
    await expectAccessible(page)
    await close()
    await browser.close()
  })
})
