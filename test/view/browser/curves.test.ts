import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { metricMeaning, metricTitle } from "../../../src/runs/metrics.ts"
import { formatNumber, formatShare } from "../../../src/util/format.ts"
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
      const swatch = document.querySelector(`.run-list line.${colour}`)!
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
    const shown = await page.locator("[data-metric] h4").allTextContents()
    expect(shown).toEqual(firstMetrics(metricNames(reports.flat())).map(metricTitle))
    expect(await page.locator(".cards > h3").allTextContents()).toEqual(["Success", "Learning", "Credit", "Soundness"])
    for (const colour of ["run-0", "run-1"])
      await expect.poll(() => painted(page, "episode/success", colour)).toBeGreaterThan(50)
    await page.uncheck(".run-list li:nth-child(2) input")
    await page.waitForFunction(
      () => document.querySelectorAll("[data-metric='episode/success'] .values li").length === 1,
    )
    await page.waitForFunction(() => document.querySelectorAll(".card.times").length === 1)
    await expect.poll(() => painted(page, "episode/success", "run-1")).toBe(0)
    expect(errors).toEqual([])
    await close()
  })

  it("say which run is best since when, and what is wrong with each", async () => {
    const made = runs.map((run, at) => {
      const reports = run.reports.reports.map(({ evaluation: _, ...one }) => {
        const success = (one.iteration > 20 && at === 1 ? 0.8 : 0.2) + (one.iteration % 3) / 100
        return { ...one, metrics: { ...one.metrics, "episode/success": success, "action/valid": at === 0 ? 0.5 : 1 } }
      })
      return { ...run, reports: { ...run.reports, reports } }
    })
    const { page, close } = await openInlined(browser, { runs: made })
    const says = page.locator(".overview .says li")
    await says.first().waitFor()
    const [best, other] = [made[1]!.info.name, made[0]!.info.name]
    expect(await says.allTextContents()).toEqual([
      `${best} is ahead of ${other} in success since iteration 21: 80.8 % against 20.8 % (mean of iterations 36 to 40).`,
      `${other}: 50.0 % of the actions are invalid: the model misses the format of actions.`,
    ])
    await says.getByRole("link", { name: other }).click()
    await page.waitForSelector(".overview .tile")
    expect(
      await page.locator(".run-list input").evaluateAll((all) => all.map((one) => (one as HTMLInputElement).checked)),
    ).toEqual([true, false])
    await close()
  })

  it("mark resumptions and checkpoints, and say what the marks mean", async () => {
    const [run] = runs
    const reports = run!.reports.reports.map((one) => (one.iteration === 30 ? { ...one, resumed: true as const } : one))
    const info = { ...run!.info, checkpoints: [60, 50] }
    const marked = { ...run!, info, reports: { ...run!.reports, run: info, reports } }
    const plain = { ...run!, reports: { ...run!.reports, reports: reports.map(({ resumed: _, ...one }) => one) } }
    const pixels = async (one: typeof marked | typeof plain) => {
      const { page, close } = await openInlined(browser, { runs: [one] })
      await drawn(page, "episode/success")
      const legend = await page.locator(".marks li").allTextContents()
      const canvas = page.locator("[data-metric='episode/success'] canvas")
      const drawing = await canvas.evaluate((one) => (one as HTMLCanvasElement).toDataURL())
      await close()
      return { legend, drawing }
    }
    const [one, other] = [await pixels(marked), await pixels(plain)]
    expect(one.legend).toEqual(["resumed or forked before this iteration", "checkpoint"])
    expect(other.legend).toEqual([])
    expect(one.drawing).not.toBe(other.drawing)
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
    expect(await valueText(page, "evaluation/success")).toContain(`(${formatShare(low)} to ${formatShare(high)})`)
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
    expect(await page.locator(".choice fieldset label:visible").allTextContents()).toEqual(["Learning rate"])
    await page.check(".choice fieldset label:visible input")
    await drawn(page, "optimizer/learning-rate")
    await page.click("[data-metric='episode/return'] .close")
    await page.waitForSelector("[data-metric='episode/return']", { state: "detached" })
    await page.fill(".controls input[type=range]", "0.6")
    await page.getByLabel("x-axis").selectOption("time")
    const shown = await page.locator("[data-metric] h4").allTextContents()
    await page.reload()
    await drawn(page, "optimizer/learning-rate")
    expect(await page.locator("[data-metric] h4").allTextContents()).toEqual(shown)
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

  it("explain themselves, with the name that files have", async () => {
    const { page, errors, close } = await open("#/curves?metrics=episode%252Fsuccess")
    const card = page.locator("[data-metric='episode/success']")
    expect(await card.locator(".meaning").isVisible()).toBe(false)
    await card.getByRole("button", { name: "What is Success?" }).click()
    expect(await card.locator(".meaning").textContent()).toBe(`${metricMeaning("episode/success")} episode/success`)
    expect(await card.getByRole("button", { name: "What is" }).getAttribute("aria-expanded")).toBe("true")
    expect(errors).toEqual([])
    await close()
  })

  /** Texts that a page writes on canvases, with the place of their left edge, from a new drawing on. */
  async function written(page: Page, metric: string, draw: () => Promise<unknown>) {
    await page.evaluate((metric) => {
      const texts: { text: string; left: number; isLow: boolean }[] = []
      Object.assign(window, { texts })
      const { fillText } = CanvasRenderingContext2D.prototype
      CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...rest) {
        const own = this.canvas.closest<HTMLElement>("[data-metric]")?.dataset.metric === metric
        const move = { right: 1, center: 0.5 }[this.textAlign as "right"] ?? 0
        const { e, f } = this.getTransform()
        const left = x + e - move * this.measureText(text).width
        if (own) texts.push({ text, left, isLow: y + f > this.canvas.height - 40 * devicePixelRatio })
        return fillText.call(this, text, x, y, ...rest)
      }
    }, metric)
    await draw()
    const texts = () => page.evaluate<{ text: string; left: number; isLow: boolean }[]>("window.texts")
    await expect.poll(async () => (await texts()).length).toBeGreaterThan(0)
    return await texts()
  }

  it("have labels that are whole, whatever the size of the values", async () => {
    const values = [0.000212, -0.00021, 12_345.678, -1_234_567, 1e-9]
    for (const [at, value] of values.entries()) {
      const reports = Array.from({ length: 30 }, (_, iteration) => ({
        iteration: iteration + 1,
        metrics: { "my/own": value * (1 + iteration / 100) },
      }))
      const run = { ...runs[0]!, reports: { ...runs[0]!.reports, reports } }
      const { page, errors, close } = await openInlined(browser, { runs: [run] })
      await drawn(page, "my/own")
      const zoom = () => page.getByRole("button", { name: "Zoom in" }).click()
      const labels = (await written(page, "my/own", zoom)).filter(({ isLow }) => !isLow)
      expect(labels.length, String(values[at])).toBeGreaterThan(1)
      for (const { text, left } of labels) expect(left, text).toBeGreaterThanOrEqual(0)
      expect(errors).toEqual([])
      await close()
    }
  })

  it("count iterations in tens, and time as clocks do", async () => {
    for (const iterations of [2000, 20_000]) {
      const reports = Array.from({ length: iterations }, (_, at) => ({ iteration: at + 1, metrics: { "my/own": at } }))
      const run = { ...runs[0]!, reports: { ...runs[0]!.reports, reports } }
      const { page, close } = await openInlined(browser, { runs: [run] }, { width: 1900 })
      await drawn(page, "my/own")
      const resize = () => page.setViewportSize({ width: 1700, height: 900 })
      const labels = (await written(page, "my/own", resize)).filter(({ isLow }) => isLow)
      const places = labels.map(({ text }) => Number(text))
      expect(places.length).toBeGreaterThan(3)
      const step = places[1]! - places[0]!
      expect([1, 2, 5].map((digit) => Math.log10(step / digit) % 1)).toContain(0)
      await close()
    }
  })

  it("have a gap and a mark where a value is not finite", async () => {
    const reports = Array.from({ length: 40 }, (_, at) => ({
      iteration: at + 1,
      metrics: { "my/own": at === 19 || at === 20 ? Number.NaN : 1 + (at % 2) },
    }))
    const at = (reports: unknown) => ({ ...runs[0]!, reports: { ...runs[0]!.reports, reports } }) as (typeof runs)[0]
    const { page, errors, close } = await openInlined(browser, { runs: [at(JSON.parse(JSON.stringify(reports)))] })
    await drawn(page, "my/own")
    const card = page.locator("[data-metric='my/own']")
    expect(await card.locator(".note").textContent()).toBe("2 values are not finite (NaN or infinite), marked ✕.")
    await tabTo(page, "[data-metric='my/own'] .chart")
    await page.keyboard.press("Home")
    for (let pressed = 0; pressed < 19; pressed++) await page.keyboard.press("ArrowRight")
    expect(await valueText(page, "my/own")).toBe("iteration 20: not finite")
    await page.keyboard.press("Escape")
    // Painted points in the columns between iterations 20 and 21: none but the marks, near the lower edge.
    const heights = () =>
      page.evaluate(() => {
        const plot = document.querySelector<HTMLElement>("[data-metric='my/own'] .u-over")!
        const canvas = document.querySelector<HTMLCanvasElement>("[data-metric='my/own'] canvas")!
        const [box, whole] = [plot.getBoundingClientRect(), canvas.getBoundingClientRect()]
        const scale = canvas.width / whole.width
        const column = (iteration: number) =>
          Math.round((box.left - whole.left + (box.width * (iteration - 1)) / 39) * scale)
        const probe = document.createElement("canvas").getContext("2d")!
        probe.fillStyle = getComputedStyle(document.querySelector(".run-list line.run-0")!).stroke
        probe.fillRect(0, 0, 1, 1)
        const wanted = probe.getImageData(0, 0, 1, 1).data
        const found: number[] = []
        for (let x = column(19.6); x <= column(21.4); x++) {
          const { data } = canvas.getContext("2d")!.getImageData(x, 0, 1, canvas.height)
          for (let y = 0; y < canvas.height; y++)
            if ([0, 1, 2].every((part) => data[4 * y + part] === wanted[part]) && data[4 * y + 3] === 255)
              found.push(1 - (y / scale - (box.top - whole.top)) / box.height)
        }
        return found
      })
    await expect.poll(async () => (await heights()).length).toBeGreaterThan(4)
    for (const height of await heights()) expect(height).toBeLessThan(0.12)
    expect(errors).toEqual([])
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
      expect(await row.locator("td").first().textContent()).toContain(formatShare(values[0]![place]!))
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
