import type { Browser } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { madeRun } from "../made-run.ts"
import { noBrowser, openBrowser, openInlined } from "./page.ts"

describe.skipIf(noBrowser)(`settings (${noBrowser ?? "in Chromium"})`, () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await openBrowser()
  })
  afterAll(() => browser?.close())

  it("show first what differs, or that alone, and find a key by a part of it", async () => {
    const runs = ["0", "1"].map((id) => madeRun(id, 2, 1))
    const { page, errors, close } = await openInlined(browser, { runs }, { hash: "#/settings" })
    const keys = () => page.locator("tbody tr th").allTextContents()
    expect(await keys()).toEqual(["seeddiffers", "training.estimator.name", "training.estimator.omega"])
    expect(await page.locator("tbody tr.differs td").allTextContents()).toEqual(["0", "1"])
    await page.getByLabel("Only differences").check()
    expect(await keys()).toHaveLength(1)
    await page.getByLabel("Only differences").uncheck()
    await page.getByLabel("Find").fill("OMEGA")
    expect(await keys()).toEqual(["training.estimator.omega"])
    await page.reload()
    await page.waitForSelector("tbody tr")
    expect(await keys()).toEqual(["training.estimator.omega"])
    expect(errors).toEqual([])
    await close()
  })

  it("can be copied, a run's whole", async () => {
    const { page, close } = await openInlined(browser, { runs: [madeRun("7", 2, 1)] }, { hash: "#/settings" })
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"])
    await page.getByRole("button", { name: "Copy the settings of runs/7" }).click()
    await page.waitForFunction(() => document.querySelector("[role=status].unseen")?.textContent === "Copied")
    expect(await page.getByText("Only differences").isVisible()).toBe(false)
    const copied = await page.evaluate(() => navigator.clipboard.readText())
    expect(JSON.parse(copied)).toEqual(madeRun("7", 2, 1).info.settings)
    await close()
  })
})
