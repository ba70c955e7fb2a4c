import type { Browser } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { blackjack } from "../../../src/environment/cards/blackjack.ts"
import { ezPoints } from "../../../src/environment/cards/ez-points.ts"
import { numberLine } from "../../../src/environment/cards/number-line.ts"
import { points24 } from "../../../src/environment/cards/points24.ts"
import type { Environment } from "../../../src/environment/environment.ts"
import { sokoban } from "../../../src/environment/sokoban/sokoban.ts"
import { Random } from "../../../src/util/random.ts"
import { groupOf, madeEpisode, madeStep } from "../data/made-group.ts"
import { runOf } from "./graph-run.ts"
import { noBrowser, openBrowser, openInlined } from "./page.ts"

describe.skipIf(noBrowser)(`states drawn (${noBrowser ?? "in Chromium"})`, () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await openBrowser()
  })
  afterAll(() => browser?.close())

  /** The state of this text as the panel shows it; undefined where it is not drawn. */
  async function drawn(observation: string) {
    const group = groupOf(madeEpisode(0, [madeStep(0, "go", { observation, anchor: "" })]))
    const { page, errors, close } = await openInlined(browser, { runs: [runOf([group])] }, { hash: "#/graph?state=0" })
    await page.waitForSelector(".stage .node")
    expect(errors).toEqual([])
    const picture = page.locator(".standing .drawn")
    const made = (await picture.count()) > 0
    const count = (selector: string) => picture.locator(selector).count()
    const attribute = async (selector: string) =>
      (await count(selector)) > 0 ? ((await picture.locator(selector).first().getAttribute("d")) ?? "") : ""
    const found = made && {
      name: await picture.getAttribute("aria-label"),
      texts: await picture.locator("text").allTextContents(),
      cards: await count(".card"),
      players: await count(".you"),
      boxes: (await attribute(".box")).split("M").length - 1,
    }
    await close()
    return found || undefined
  }

  async function firstSeen<Task>(environment: Environment<Task>): Promise<string> {
    const [task] = environment.tasks("train", new Random(1))
    const context = { random: new Random(2), signal: new AbortController().signal }
    const episode = await environment.start(task!, context)
    await episode[Symbol.asyncDispose]?.()
    return episode.first.text
  }

  it("draws a room of Sokoban", async () => {
    const text = await firstSeen(sokoban({ boxes: 2, size: [7, 8] }))
    const found = await drawn(text)
    expect(found).toMatchObject({ players: 1, boxes: text.split(/[X√]/).length - 1 })
    expect(found!.name).toContain("Sokoban, 8 by 7")
    expect(found!.name).toContain(`row ${text.split("\n").findIndex((row) => /[PS]/.test(row)) + 1}`)
  })

  it.each([
    ["points24", points24()],
    ["ez-points", ezPoints()],
  ] as const)("draws the cards of %s", async (_, environment) => {
    const text = await firstSeen(environment)
    const cards = /^Cards: (.*)$/m.exec(text)![1]!.split(" ")
    const found = await drawn(text)
    expect(found!.cards).toBe(cards.length)
    expect(found!.texts.slice(0, -1)).toEqual(cards)
  })

  it("draws a table of blackjack", async () => {
    const text = await firstSeen(blackjack())
    const [, dealer, mine] = /^Dealer: (.*) \?\nYou: (.*)$/.exec(text)!
    expect((await drawn(text))!.texts).toEqual([dealer, "?", ...mine!.split(" ")])
  })

  it("draws the number line", async () => {
    const text = await firstSeen(numberLine())
    const [, target, current] = /^Target: (\d)\nCurrent: (\d)$/.exec(text)!
    expect(await drawn(text)).toMatchObject({
      name: `Number line: at ${current}, target ${target}`,
      texts: ["0", "1", "2", "3", "4", "5"],
    })
  })

  it("draws where one stands in a household", async () => {
    const found = await drawn("You arrive at shelf 1. On the shelf 1, you see a watch 2, and a desklamp 1.")
    expect(found!.name).toBe("At shelf 1; there: watch 2, desklamp 1")
    expect(found!.texts).toEqual(["shelf 1", "watch 2", "desklamp 1"])
  })

  it.each([
    ["rows of different lengths", "# # #\n# P #\n# #"],
    ["two players", "# # #\n# P P\n# # #"],
    ["no player", "# # #\n# _ #\n# # #"],
    ["another symbol", "# # #\n# P #\n# # <"],
    [
      "a room too wide",
      Array(3)
        .fill(`${"# ".repeat(100)}P`)
        .join("\n"),
    ],
    ["a card that there is not", "Cards: A 99\nFormula: 1"],
    ["markup for a formula", "Cards: A 2\nFormula: <script>"],
    ["a line too long", "Target: 5\nCurrent: 9000"],
  ])("leaves as text %s", async (_, text) => {
    expect(await drawn(text)).toBeUndefined()
  })
})
