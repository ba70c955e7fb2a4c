import { describe, expect, it } from "vitest"
import { type Page, pageText, readCommand, type Shop } from "../../../src/environment/webshop/shop.ts"
import { goal, product, shopOf } from "./world.ts"

function play(shop: Shop, ...actions: string[]): Page {
  return actions.reduce((page, action) => shop.act(page, action), shop.index())
}
const names = (page: Page) => [...page.links.keys()]
const lamps = (count: number) =>
  Array.from({ length: count }, (_, i) => product({ asin: `LAMP${i + 1}`, category: i % 2 ? "porch" : "garden" }))

describe("pages of the shop", () => {
  it("lead from the search to the purchase", async () => {
    const shop = await shopOf([product()])
    const index = shop.index()
    expect(pageText(index)).toBe("WebShop [SEP] Instruction: [SEP] a weather proof lamp [SEP] Search")
    expect([index.hasSearchBar, names(index)]).toEqual([true, ["search"]])

    const results = shop.act(index, "search[Garden]")
    expect(pageText(results)).toBe(
      "Instruction: [SEP] a weather proof lamp [SEP] Back to Search [SEP] Page 1 (Total results: 1) [SEP] Next > [SEP] LAMP1 " +
        "[SEP] Bright Garden Lamp [SEP] $22.5",
    )
    expect([results.hasSearchBar, names(results)]).toEqual([false, ["back to search", "next >", "lamp1"]])

    const item = shop.act(results, "click[LAMP1]")
    expect(pageText(item)).toBe(
      "Instruction: [SEP] a weather proof lamp [SEP] Back to Search [SEP] < Prev [SEP] color [SEP] navy blue [SEP] red [SEP] size " +
        "[SEP] small [SEP] large [SEP] Bright Garden Lamp [SEP] Price: $22.5 [SEP] Rating: N.A. [SEP] Description [SEP] Features " +
        "[SEP] Reviews [SEP] Buy Now",
    )
    const buttons = ["back to search", "< prev", "description", "features", "reviews", "buy now"]
    expect(names(item)).toEqual([...buttons, "navy blue", "red", "small", "large"])

    const ready = ["click[red]", "click[features]", "click[< prev]", "click[navy blue]", "click[large]"].reduce(
      (page, action) => shop.act(page, action),
      item,
    )
    expect(pageText(ready)).toBe(pageText(item))
    const done = shop.act(ready, "click[buy now]")
    expect(done.verdict?.reward).toBe(1)
    expect(pageText(done)).toBe(
      "Thank you for shopping with us! [SEP] Your code: [SEP] None [SEP] (Paste it in your MTurk interface.) [SEP] Purchased [SEP] asin " +
        '[SEP] LAMP1 [SEP] options [SEP] {"color": "navy blue", "size": "large"} [SEP] attrs [SEP] None [SEP] category [SEP] None [SEP] ' +
        "query [SEP] None [SEP] product category [SEP] None [SEP] Target [SEP] asin [SEP] options [SEP] attrs [SEP] price upper [SEP] " +
        "instuction text [SEP] category [SEP] product category [SEP] query [SEP] Goal [SEP] None [SEP] Reward [SEP] Your score (min 0.0, " +
        "max 1.0) [SEP] 1.0 [SEP] Reward Details [SEP] None",
    )
    expect(names(done)).toEqual([])
  })

  it("show description, features and reviews", async () => {
    const shop = await shopOf([product({ bullets: ["Sturdy", "", " \n", "Warm "] })])
    const texts = (name: string) => play(shop, "search[lamp]", "click[lamp1]", `click[${name}]`).texts
    expect(texts("description")).toEqual(["Back to Search", "< Prev", "Stands outside."])
    // An empty bullet leaves an empty text; one of line breaks leaves none.
    expect(texts("features")).toEqual(["Back to Search", "< Prev", "Sturdy", "", "Warm"])
    expect(texts("reviews")).toEqual(["Back to Search", "< Prev"])
    const bare = await shopOf([product({ description: "" })])
    expect(play(bare, "search[lamp]", "click[lamp1]", "click[description]").texts).toEqual(["Back to Search", "< Prev"])
  })

  it("of results are not limited, and keep their position", async () => {
    const shop = await shopOf(lamps(60))
    const first = play(shop, "search[garden lamp]")
    expect(first.texts[1]).toBe("Page 1 (Total results: 50)")
    const sixth = play(shop, "search[garden lamp]", ...Array(5).fill("click[next >]"))
    expect(sixth.texts).toEqual(["Back to Search", "Page 6 (Total results: 50)", "< Prev", "Next >"])
    expect(shop.act(sixth, "click[next >]").texts[1]).toBe("Page 7 (Total results: 50)")
    const second = play(shop, "search[garden lamp]", "click[next >]")
    expect(names(second).slice(0, 3)).toEqual(["back to search", "< prev", "next >"])
    expect(shop.act(second, "click[< prev]").texts).toEqual(first.texts)
    const opened = shop.act(second, `click[${names(second)[3]}]`)
    expect(shop.act(opened, "click[< prev]").texts).toEqual(second.texts)
    expect((await shopOf(lamps(60), goal(), 3)).act(first, "search[lamp]").texts).toHaveLength(3 + 3 * 3)
  })

  it("can be searched from anywhere; clicks need a link", async () => {
    const shop = await shopOf(lamps(3))
    const item = play(shop, "search[lamp]", "click[lamp2]")
    expect(shop.act(item, "search[lamp]").texts[1]).toBe("Page 1 (Total results: 3)")
    for (const action of [
      "click[lamp3]",
      "click[search]",
      "Click[buy now]",
      "buy now",
      "search[]",
      "click[]",
      "",
      "click[toString]",
    ]) {
      expect(shop.act(item, action)).toBe(item)
    }
    expect(play(shop, "click[search]")).toStrictEqual(play(shop))
    expect(play(shop, "search[lamp]", "click[lamp2]", "click[back to search]").texts).toEqual(["Search"])
    expect(play(shop, "search[  ]").texts).toEqual(["Back to Search", "Page 1 (Total results: 0)", "Next >"])
  })

  it("forget the options when the product is left", async () => {
    const shop = await shopOf([product()])
    const open = ["search[lamp]", "click[lamp1]", "click[large]"]
    for (const way of [["click[< prev]"], ["click[back to search]", "search[lamp]"], ["search[lamp]"]]) {
      const done = play(shop, ...open, ...way, "click[lamp1]", "click[buy now]")
      expect(done.texts).toContain("{}")
    }
  })

  it("assign a value with two names to the last, and never confuse options with buttons", async () => {
    const options = new Map([
      ["inner", ["one", "buy now"]],
      ["outer", ["one", "< prev", "search"]],
    ])
    const shop = await shopOf([product({ options })])
    const open = ["search[lamp]", "click[lamp1]", "click[one]"]
    const done = play(shop, ...open, "click[buy now]")
    expect(done.texts).toContain('{"outer": "one"}')
    expect(play(shop, ...open, "click[< prev]").texts[1]).toBe("Page 1 (Total results: 1)")
    const item = play(shop, ...open)
    expect(names(item)).toEqual([
      ...["back to search", "< prev", "description", "features", "reviews", "buy now", "one", "search"],
    ])
  })

  it("list by category, query and attribute, and in a random order determined by the goal", async () => {
    const products = lamps(60).map((lamp, i) => ({
      ...lamp,
      query: i < 3 ? "rare lamps" : lamp.query,
      attributes: ["b c", "b c"],
    }))
    const shop = await shopOf(products)
    const total = (search: string) => play(shop, `search[${search}]`).texts[1]
    expect(total("<c> porch lamps")).toBe("Page 1 (Total results: 30)")
    expect(total("<q> rare lamps")).toBe("Page 1 (Total results: 3)")
    expect(total("<a> b c")).toBe("Page 1 (Total results: 60)")
    for (const nothing of ["<c>", "<a> __proto__", "<q> constructor", "<c> <c> porch"]) {
      expect(total(nothing)).toBe("Page 1 (Total results: 0)")
    }
    expect(play(shop, "search[<q> rare lamps]").texts.filter((text) => text.startsWith("LAMP"))).toEqual([
      "LAMP1",
      "LAMP2",
      "LAMP3",
    ])
    const random = await shopOf(products)
    const again = await shopOf(products)
    expect(play(random, "search[<r>]").texts).toEqual(play(again, "search[<r>]").texts)
    expect(new Set(names(play(random, "search[<r> x]", "click[next >]"))).size).toBe(13)
    expect(total("<r>")).toBe("Page 1 (Total results: 50)")
    expect(play(await shopOf(lamps(4)), "search[<r>]").texts[1]).toBe("Page 1 (Total results: 4)")
  })
})

// What Python's re.match(r"(.+)\[(.+)\]", action) gives.
describe("readCommand", () => {
  it.each([
    ["search[a]", "search", "a"],
    ["search[a[b]c]", "search[a", "b]c"],
    ["search[]", "search[]", undefined],
    ["click[x]]", "click", "x]"],
    ["[x]", "[x]", undefined],
    ["a[]]", "a", "]"],
    ["search[a]\n[b]", "search", "a"],
    ["\nsearch[a]", "\nsearch[a]", undefined],
    ["search[[]", "search", "["],
    ["search[a] tail ] x", "search", "a] tail "],
    ["search[ABC]x[d]", "search[ABC]x", "d"],
    ["search[A\rB]", "search", "a\rb"],
    ["x[y", "x[y", undefined],
    ["", "", undefined],
    ["]", "]", undefined],
    ["[]", "[]", undefined],
  ])("%j", (action, name, argument) => expect(readCommand(action)).toEqual({ name, argument }))

  it("takes linear time on rows of brackets", () => {
    for (const hostile of ["[".repeat(1e6), "[]".repeat(5e5), "]".repeat(1e6), `search${"[a".repeat(5e5)}`]) {
      expect(readCommand(hostile).name.length).toBeGreaterThan(0)
    }
  })
})
