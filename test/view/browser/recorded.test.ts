import { mkdtemp, rm, truncate } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest"
import { episodesPath } from "../../../src/view/record/folder.ts"
import { recordEpisodes } from "../../../src/view/record/recorder.ts"
import { writeReport } from "../../../src/view/serve/report.ts"
import { openView } from "../../../src/view/serve/view.ts"
import { episode } from "../../training/episodes.ts"
import { madeRun } from "../made-run.ts"
import { bytes, group, plainGroups, record, said } from "../record/groups.ts"
import { madeFolder, reportsOf } from "../run-folder.ts"
import { expectAccessible } from "./accessible.ts"
import { noBrowser, openBrowser, openInlined, openPage, openServed } from "./page.ts"

describe.skipIf(noBrowser)(`recorded episodes, served (${noBrowser ?? "in Chromium"})`, () => {
  let browser: Browser
  let folder: string
  const run = () => join(folder, "run")
  beforeAll(async () => {
    browser = await openBrowser()
    folder = await mkdtemp(join(tmpdir(), "gigpo-recorded-"))
    await madeFolder(run(), { training: { iterations: 3 } }, reportsOf(3))
    await record(
      run(),
      [1, 2, 3].map((iteration) => [iteration, plainGroups(4, `iteration ${iteration}`)]),
    )
    const observer = recordEpisodes({ tokenizer: bytes })
    await observer.start!({ iteration: 3, iterations: 3, directory: run() })
    const heldOut = [0, 1, 2].map((task) =>
      group(task, [episode([said("a", "look", `held out ${task}`)], { metrics: { success: task === 1 ? 1 : 0 } })]),
    )
    observer.evaluation!(2, heldOut)
    await observer.end!({ iteration: 3 })
  })
  afterAll(async () => {
    await browser?.close()
    await rm(folder, { recursive: true })
  })

  async function opened(hash: string) {
    const view = await openView([run()])
    onTestFinished(() => view.close())
    const { page, errors, close } = await openPage(browser)
    onTestFinished(close)
    await page.goto(view.url)
    await page.waitForSelector("main .view")
    await page.evaluate((to) => {
      location.hash = to
    }, hash)
    return { page, errors }
  }
  const count = (page: Page, text: string) => page.getByText(text, { exact: true }).waitFor()

  it("a row opens in a new tab where it is clicked for that, wherever in the row", async () => {
    const { page, errors } = await opened("#/episodes")
    await count(page, "24 of 24 episodes")
    const row = page.locator("[role=row][aria-rowindex='3']")
    const click = async (column: string) => {
      const box = (await row.locator(column).boundingBox())!
      await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2)
    }
    await page.keyboard.down("ControlOrMeta")
    const [tab] = await Promise.all([page.context().waitForEvent("page"), click(".steps")])
    await page.keyboard.up("ControlOrMeta")
    await tab.waitForSelector(".conversation .step")
    expect(await page.locator("[role=grid]").count()).toBe(1)
    await click(".return")
    await page.waitForSelector(".conversation .step")
    expect(page.url()).toBe(tab.url())
    expect(errors).toEqual([])
  })

  it("a held-out episode can be read, marked as such", async () => {
    const { page, errors } = await opened("#/episodes")
    await page.getByRole("link", { name: "Evaluation episodes (3)" }).click()
    await page.getByRole("heading", { name: "Evaluation episodes" }).waitFor()
    await count(page, "3 of 3 episodes")
    await expectAccessible(page)
    await page.locator("[role=row][aria-rowindex='2']").click()
    await page.getByRole("heading", { name: "Evaluation episode of task 0, after iteration 2" }).waitFor()
    expect(await page.locator(".step .did").first().textContent()).toBe("held out 0")
    expect(await page.getByRole("link", { name: "State graph" }).count()).toBe(0)
    expect(errors).toEqual([])
  })

  it("is found by its texts, and opens at the step that has them", async () => {
    const { page, errors } = await opened("#/episodes")
    await page.getByRole("searchbox", { name: "Text" }).fill("iteration 2 on")
    await page.getByRole("button", { name: "Search" }).click()
    await count(page, "4 of 24 episodes")
    await page.getByText("4 episodes found.").waitFor()
    await page.reload()
    await count(page, "4 of 24 episodes")
    await page.locator("[role=row][aria-rowindex='2']").click()
    await page.waitForSelector(".conversation .step")
    expect(new URL(page.url()).hash).toMatch(/^#\/episodes\/\w+\/2\/0\/0\?step=1$/)
    await page.goBack()
    await page.getByRole("searchbox", { name: "Text" }).fill("nowhere")
    await page.getByRole("button", { name: "Search" }).click()
    await page.getByText("0 episodes found.").waitFor()
    await page.getByText("No episode matches the filters.").waitFor()
    expect(errors).toEqual([])
  })

  it("a report has evaluation episodes too, and is searched", async () => {
    const path = join(folder, "report.html")
    await writeReport([run()], path)
    const { page, errors, close } = await openPage(browser)
    onTestFinished(close)
    await page.goto(`${pathToFileURL(path).href}#/episodes`)
    await page.getByText("15 of 15 groups of episodes are included in full").click()
    expect((await page.locator("footer h2").allTextContents()).map((name) => name.split("/").at(-1))).toEqual([
      "run",
      "run, evaluations",
    ])
    await page.getByRole("searchbox", { name: "Text" }).fill("ITERATION 3 ON")
    await page.getByRole("button", { name: "Search" }).click()
    await count(page, "4 of 24 episodes")
    await page.getByRole("link", { name: "Evaluation episodes (3)" }).click()
    await page.locator("[role=row][aria-rowindex='3']").click()
    await page.getByRole("heading", { name: "Evaluation episode of task 1" }).waitFor()
    expect(errors).toEqual([])
  })

  it("says which iterations are damaged, in the list and among the states", async () => {
    await truncate(episodesPath(run(), 2), 50)
    const { page } = await opened("#/episodes")
    const told = "The episodes of iteration 2 cannot be read, because the file is damaged."
    await page.getByText(told).waitFor()
    await count(page, "16 of 16 episodes")
    for (const hash of ["#/graph", `${new URL(page.url()).hash.replace("episodes", "graph")}`]) {
      await page.evaluate((to) => {
        location.hash = to
      }, hash)
      await page.getByText(told).waitFor()
    }
    await page.waitForSelector(".stage .node")
  })
})

describe.skipIf(noBrowser)(`what takes time (${noBrowser ?? "in Chromium"})`, () => {
  it("is named while it is read", async () => {
    const browser = await openBrowser()
    const run = madeRun("0", 2, 1)
    let release: (() => void) | undefined
    const { page, errors, close } = await openServed(browser, async (path) => {
      if (path === "runs") return [run.info]
      if (path.endsWith("reports")) return run.reports
      if (path.endsWith("episodes/2/0")) {
        await new Promise<void>((resolve) => {
          release = resolve
        })
        return run.groups[1]
      }
      return run.episodes
    })
    const go = (hash: string) =>
      page.evaluate((to) => {
        location.hash = to
      }, hash)
    for (const [hash, told, ready] of [
      ["#/episodes/0/2/0/1", "Reading group 0 of iteration 2 …", ".conversation"],
      ["#/episodes/0/2/0/1?with=2", "Reading group 0 of iteration 2 …", ".compared"],
      ["#/episodes/0/2/0?state=0", "Reading group 0 of iteration 2 …", "[role=grid]"],
      ["#/graph/0/2/0", "Reading the episodes of a group …", ".stage .node"],
    ] as const) {
      await go(hash)
      await page.getByRole("status").filter({ hasText: told }).waitFor()
      await vi.waitFor(() => expect(release).toBeDefined()) // the text may still be that of the last page
      release!()
      release = undefined
      await page.waitForSelector(ready)
      expect(await page.getByText("Reading").count()).toBe(0)
    }
    expect(errors).toEqual([])
    await close()
    await browser.close()
  })

  it("names fit their list at 1280 pixels, with agents and without", async () => {
    const browser = await openBrowser()
    const run = madeRun("0", 1, 1)
    const [made] = run.groups
    const episodes = made!.episodes.map((one, at) => ({
      ...one,
      member: 400 + at,
      steps: one.steps.map((step, place) => ({
        ...step,
        agent: ["planner", "critic"][place % 2]!,
        conversation: "conversation",
      })),
    }))
    const { page, errors, close } = await openInlined(
      browser,
      { runs: [{ ...run, groups: [{ ...made!, episodes }] }] },
      { hash: "#/graph/0/1/0" },
    )
    await page.waitForSelector(".paths .who")
    const cut = await page
      .locator(".paths .who, .paths .who span")
      .evaluateAll((all) => all.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent))
    expect(cut).toEqual([])
    const names = await page.locator(".paths .who").allTextContents()
    expect(new Set(names)).toContain("Episode 400planner")
    expect(errors).toEqual([])
    await close()
    await browser.close()
  })
})
