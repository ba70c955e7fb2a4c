import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { formatNumber } from "../../../src/util/format.ts"
import { curvesOf, smoothed } from "../../../src/view/data/curves.ts"
import { firstMetrics, metricNames } from "../../../src/view/data/metrics.ts"
import { reportingRun } from "../made-reports.ts"
import { tabTo } from "./accessible.ts"
import { noBrowser, openBrowser, openInlined } from "./page.ts"

const runs = [reportingRun("0", 60), reportingRun("3", 40)]
const reports = runs.map(({ reports }) => reports.reports)

/** How many points of its canvas a chart draws in a colour of the page. */
function painted(page: Page, metric: string, colour: string): Promise<number> {
  return page.evaluate(
    ([metric, colour]) => {
      const probe = document.createElement("canvas").getContext("2d")!
      const swatch = document.querySelector(`.runs line.${colour}`)!
      probe.fillStyle = getComputedStyle(swatch).stroke
      probe.fillRect(0, 0, 1, 1)
      const wanted = probe.getImageData(0, 0, 1, 1).data
      const canvas = document.querySelector<HTMLCanvasElement>(`[data-metric="${metric}"] canvas`)
      if (!canvas) return 0
      const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height)
      let count = 0
      for (let at = 0; at < data.length; at += 4)
        if (data[at + 3] === 255 && [0, 1, 2].every((part) => data[at + part] === wanted[part])) count += 1
      return count
    },
    [metric, colour] as const,
  )
}

describe.skipIf(noBrowser)(`curves (${noBrowser ?? "in Chromium"})`, () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await openBrowser()
  })
  afterAll(() => browser?.close())

  const open = (hash = "", options = {}) => openInlined(browser, { runs }, { hash, height: 3000, ...options })
  const drawn = (page: Page, metric: string) => page.waitForSelector(`[data-metric="${metric}"] canvas`)
  const valueText = (page: Page, metric: string) =>
    page.locator(`[data-metric="${metric}"] .chart`).getAttribute("aria-valuetext")

  it("are those that say most, of every run that is shown, in its colour", async () => {
    const { page, errors, close } = await open()
    await drawn(page, "episode/success")
    const shown = await page.locator("[data-metric] h3").allTextContents()
    expect(shown).toEqual(firstMetrics(metricNames(reports.flat())))
    for (const colour of ["run-0", "run-1"])
      await expect.poll(() => painted(page, "episode/success", colour)).toBeGreaterThan(50)
    await page.uncheck(".runs li:nth-child(2) input")
    await page.waitForFunction(
      () => document.querySelectorAll("[data-metric='episode/success'] .values li").length === 1,
    )
    await page.waitForFunction(() => document.querySelectorAll(".card.times").length === 1)
    await expect.poll(() => painted(page, "episode/success", "run-1")).toBe(0)
    expect(errors).toEqual([])
    await close()
  })

  it("read out what the reports hold, place by place, on every chart at once", async () => {
    const { page, close } = await open()
    await drawn(page, "episode/return")
    await tabTo(page, "[data-metric='episode/return'] .chart")
    const words = (metric: string, place: number) => {
      const { values } = curvesOf(reports, metric, "iteration")
      return `iteration ${place + 1}: runs/0 ${formatNumber(values[0]![place]!)}, runs/3 ${formatNumber(values[1]![place]!)}`
    }
    await page.keyboard.press("Home")
    expect(await valueText(page, "episode/return")).toBe(words("episode/return", 0))
    for (let pressed = 0; pressed < 6; pressed += 1) await page.keyboard.press("ArrowRight")
    await page.keyboard.press("ArrowLeft")
    for (const metric of ["episode/return", "loss/policy", "step-group/size"])
      expect(await valueText(page, metric)).toBe(words(metric, 5))
    await page.keyboard.press("End")
    expect(await valueText(page, "episode/return")).toMatch(/^iteration 60: runs\/0 \S+, runs\/3 –$/)
    const [low, high] = reports[0]!.at(-1)!.evaluation!.successInterval
    expect(await valueText(page, "evaluation/success")).toContain(`(${formatNumber(low)} to ${formatNumber(high)})`)
    await close()
  })

  it("are read under the pointer, too, and zoomed by a drag and by keys, all together", async () => {
    const { page, errors, close } = await open()
    await drawn(page, "episode/steps")
    const box = (await page.locator("[data-metric='episode/return'] .u-over").boundingBox())!
    await page.mouse.move(box.x + box.width / 2, box.y + 50)
    expect(await valueText(page, "loss/policy")).toMatch(/^iteration (30|31):/)
    await page.mouse.down()
    await page.mouse.move(box.x + box.width * 0.75, box.y + 60, { steps: 4 })
    await page.mouse.up()
    const all = page.getByRole("button", { name: "Show all" })
    expect(await all.isEnabled()).toBe(true)
    // What lies beyond is not reached by the pointer any more.
    const other = (await page.locator("[data-metric='episode/steps'] .u-over").boundingBox())!
    await page.mouse.move(other.x + 2, other.y + 50)
    await expect.poll(() => valueText(page, "episode/return")).toMatch(/^iteration (30|31):/)
    await page.mouse.dblclick(other.x + 20, other.y + 50)
    expect(await all.isEnabled()).toBe(false)
    await tabTo(page, "[data-metric='episode/return'] .chart")
    await page.keyboard.press("+")
    expect(await all.isEnabled()).toBe(true)
    await page.keyboard.press("0")
    expect(await all.isEnabled()).toBe(false)
    expect(errors).toEqual([])
    await close()
  })

  it("are found by name, added and taken away; the address keeps what was chosen", async () => {
    const { page, errors, close } = await open()
    await drawn(page, "episode/success")
    await page.click(".choice summary")
    await page.waitForSelector(".choice fieldset")
    await page.fill(".choice input[type=search]", "LEARNING")
    expect(await page.locator(".choice fieldset label:visible").allTextContents()).toEqual(["optimizer/learning-rate"])
    await page.check(".choice fieldset label:visible input")
    await drawn(page, "optimizer/learning-rate")
    await page.click("[data-metric='episode/return'] .close")
    await page.waitForSelector("[data-metric='episode/return']", { state: "detached" })
    await page.fill(".controls input[type=range]", "0.6")
    await page.getByLabel("x-axis").selectOption("time")
    const shown = await page.locator("[data-metric] h3").allTextContents()
    await page.reload()
    await drawn(page, "optimizer/learning-rate")
    expect(await page.locator("[data-metric] h3").allTextContents()).toEqual(shown)
    expect(await page.inputValue(".controls input[type=range]")).toBe("0.6")
    expect(await valueText(page, "loss/policy")).toMatch(/^after \d/)
    await page.click(".choice summary")
    await page.getByRole("button", { name: "Reset" }).click()
    await drawn(page, "episode/return")
    expect(errors).toEqual([])
    await close()
  })

  it("are smoothed before what they were made of, which stays to be read", async () => {
    const { page, close } = await open("#/curves?smooth=0.9&metrics=episode%252Freturn")
    await drawn(page, "episode/return")
    const { values } = curvesOf(reports, "episode/return", "iteration")
    const spread = (column: readonly (number | null)[]) =>
      column.slice(1).reduce((sum: number, value, at) => sum + Math.abs((value ?? 0) - (column[at] ?? 0)), 0)
    expect(spread(smoothed(values[0]!, 0.9))).toBeLessThan(spread(values[0]!) / 2)
    const plain = await painted(page, "episode/return", "run-0")
    await page.fill(".controls input[type=range]", "0")
    // The full colour has less to go up and down.
    await expect.poll(() => painted(page, "episode/return", "run-0")).toBeGreaterThan(plain)
    expect(await valueText(page, "episode/return")).toContain(formatNumber(values[0]!.at(-1)!))
    await close()
  })

  it("have a table of what they show", async () => {
    const { page, close } = await open("#/curves?metrics=evaluation%252Fsuccess")
    await page.click("[data-metric='evaluation/success'] summary")
    const rows = page.locator("[data-metric='evaluation/success'] tbody tr")
    await expect.poll(() => rows.count()).toBe(6) // it is filled once it is open
    const { values } = curvesOf(reports, "evaluation/success", "iteration")
    for (const [place, row] of (await rows.all()).entries()) {
      expect(await row.locator("th").textContent()).toBe(`iteration ${(place + 1) * 10}`)
      expect(await row.locator("td").first().textContent()).toContain(formatNumber(values[0]![place]!))
    }
    await close()
  })

  it("say where the time of iterations went", async () => {
    const { page, close } = await open()
    const table = page.locator(".card.times").first().locator("tbody tr")
    const names = await table.locator("th").allTextContents()
    expect(names.slice(0, 3)).toEqual(["rollout", "advantage", "update"])
    const shares = await table.locator("td:nth-child(3)").allTextContents()
    expect(shares.reduce((sum, text) => sum + Number.parseFloat(text), 0)).toBeCloseTo(100, 0)
    await close()
  })

  it("follow the theme", async () => {
    const { page, close } = await open()
    await drawn(page, "episode/success")
    await page.getByLabel("Colours").selectOption("dark")
    await expect.poll(() => painted(page, "episode/success", "run-0")).toBeGreaterThan(50)
    await close()
  })
})
