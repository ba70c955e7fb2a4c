import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { type Catalogue, openCatalogue } from "../../../src/environment/webshop/catalogue.ts"
import { findCatalogue, openCatalogueFiles } from "../../../src/environment/webshop/catalogue-files.ts"
import { Random } from "../../../src/util/random.ts"
import * as webshop from "./data.ts"

const folder = mkdtempSync(join(tmpdir(), "gigpo-webshop-"))
afterAll(() => rmSync(folder, { recursive: true }))

function write(name: string, content: unknown): string {
  const path = join(folder, name)
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content))
  return path
}

const lamp = {
  asin: "LAMP1",
  name: "Lamp",
  full_description: "Shines.",
  small_description: ["Pole", "Glow"],
  pricing: "$1,010.50 to $1,018.34 (today)",
  customization_options: { Color: [{ value: " Navy/Blue ", image: "x" }, { value: "RED" }], Size: null },
  product_category: "Shop › Lamps",
  category: "garden",
  query: " Garden Lamps ",
  images: [],
}

const open = async (products: unknown, attributes: unknown = {}, human?: unknown) =>
  openCatalogueFiles({
    products: write("products.json", products),
    attributes: write("attributes.json", attributes),
    human: human === undefined ? undefined : write("human.json", human),
  })

describe("catalogue files", () => {
  it("are parsed field by field", async () => {
    const source = await open([lamp], {
      LAMP1: { attributes: ["soft light"], instruction: "a lamp", instruction_attributes: ["soft light"] },
      OTHER: { attributes: [] },
    })
    expect(source.size).toBe(1)
    expect(source.read(0)).toEqual({
      product: {
        asin: "LAMP1",
        title: "Lamp",
        description: "Shines.",
        bullets: ["Pole", "Glow"],
        prices: [1010.5, 1018.34],
        priceTag: "$1010.5 to $1018.34",
        options: new Map([["color", ["navy | blue", "red"]]]),
        attributes: ["soft light"],
        category: "garden",
        query: "garden lamps",
        productCategory: "Shop › Lamps",
      },
      instructions: [{ text: "a lamp", attributes: ["soft light"] }],
    })
  })

  it.each([
    ["$10", [10], "$10.0"],
    ["", [100], "$100.0"],
    [null, [100], "$100.0"],
    ["ask us", [100], "$100.0"],
    ["$3 $4 $5", [3, 4], "$3.0 to $4.0"],
  ])("price %j", async (pricing, prices, priceTag) => {
    expect((await open([{ ...lamp, pricing }])).read(0).product).toMatchObject({ prices, priceTag })
  })

  it("can omit texts and attributes", async () => {
    const { asin, name } = lamp
    const { product, instructions } = (
      await open([{ asin, name, customization_options: "", small_description: "one" }])
    ).read(0)
    expect(product).toMatchObject({
      description: "",
      bullets: ["one"],
      category: "",
      query: "",
      attributes: ["DUMMY_ATTR"],
    })
    expect([product.options.size, instructions]).toEqual([0, []])
  })

  it("skip products without a key and duplicates; the last attributes count", async () => {
    const named = (asin: string, name: string) => ({ ...lamp, asin, name })
    const products = [
      named("nan", "a"),
      named("LAMP1", "b"),
      named("12345678901", "c"),
      named("LAMP1", "d"),
      named("LAMP2", "e"),
    ]
    const source = await open(products, '{"LAMP1": {"attributes": ["old"]}, "LAMP1": {"attributes": ["new"]}}')
    const titles = Array.from({ length: source.size }, (_, i) => source.read(i).product.title)
    expect(titles).toEqual(["b", "e"])
    expect(source.read(0).product.attributes).toEqual(["new"])
  })

  it("yield goals for all combinations of options, or from human instructions", async () => {
    const attributes = { LAMP1: { attributes: ["a"], instruction: "a lamp", instruction_attributes: ["a"] } }
    const options = { b: [{ value: "1" }, { value: "2" }], a: [{ value: "x" }, { value: "y" }, { value: "z" }] }
    const products = [{ ...lamp, pricing: "$985", customization_options: options }]
    const { goals } = await openCatalogue(await open(products, attributes))
    const all = Array.from({ length: goals.size }, (_, i) => goals.inCatalogueOrder(i))
    expect(all.map(({ instruction }) => instruction)).toEqual(
      ["x", "y", "z"].flatMap((a) => ["1", "2"].map((b) => `a lamp with a: ${a}, and b: ${b}`)),
    )
    expect(all[3]).toMatchObject({ options: { a: "y", b: "2" }, priceUpper: 1_000_000, weight: 1 / 6 })

    const people = [
      { instruction: "..one. two.", instruction_attributes: ["a"], instruction_options: ["x", "9"] },
      { instruction: "skipped", instruction_attributes: [], instruction_options: [] },
    ]
    const human = await openCatalogue(await open([{ ...lamp, pricing: "$12" }], attributes, { LAMP1: people }))
    expect(human.goals.size).toBe(1)
    const goal = human.goals.at(0)
    expect(goal).toMatchObject({ attributes: ["a"], options: ["x", "9"], weight: 1 })
    expect(goal.instruction).toBe(`one. two, and price lower than ${goal.priceUpper}.00 dollars`)
    expect([30, 40, 50]).toContain(goal.priceUpper)
  })

  it.each([
    [[{ ...lamp, name: 7 }], {}, 'element 1 at byte 1 must have a string "name"'],
    [[lamp, null], {}, "must be an object"],
    [[{ ...lamp, pricing: "$1.2.3" }], {}, "must read like"],
    [[{ ...lamp, pricing: "$" }], {}, "must read like"],
    [[{ ...lamp, small_description: [1] }], {}, "small_description must be a list of strings"],
    [[{ ...lamp, customization_options: { Color: "red" } }], {}, "customization_options.Color must be a list or null"],
    [
      [{ ...lamp, customization_options: { Color: [{}] } }],
      {},
      'customization_options.Color[0] must have a string "value"',
    ],
    [[], {}, "has no products"],
    [[lamp], [], undefined],
    [[lamp], [{}], "must be an object by asin"],
    [[lamp], { LAMP1: 3 }, "(LAMP1) must be an object"],
    [[lamp], { LAMP1: { instruction: "x", instruction_attributes: [] } }, "must not be empty"],
    ["[{", {}, "ends too early"],
    [[lamp], '{"LAMP1": {"attributes"', "ends too early"],
  ])("are rejected where they are corrupt: %j, %j", async (products, attributes, message) => {
    const opened = open(products, attributes)
    if (message === undefined) return expect((await opened).size).toBe(1)
    await expect(opened).rejects.toMatchObject({ code: "BAD_DATA", message: expect.stringContaining(message) })
  })

  it("are found in a folder, and the error explains how to get them", () => {
    const empty = mkdtempSync(join(folder, "empty-"))
    for (const where of [empty, join(folder, "nowhere")]) {
      expect(() => findCatalogue(where, "synthetic")).toThrow(
        expect.objectContaining({ code: "BAD_DATA", message: expect.stringContaining("omit data") }),
      )
    }
    writeFileSync(join(empty, "items_shuffle.json"), "[]")
    expect(() => findCatalogue(empty, "synthetic")).toThrow("items_ins_v2.json")
    writeFileSync(join(empty, "items_ins_v2.json"), "{}")
    expect(findCatalogue(empty, "synthetic").products).toBe(join(empty, "items_shuffle.json"))
    expect(() => findCatalogue(empty, "human")).toThrow("items_human_ins.json")
  })
})

describe.skipIf(!webshop.present)(`WebShop's small catalogue${webshop.reason}`, () => {
  it("is the same streamed and in memory", async () => {
    const files = findCatalogue(webshop.folder, "synthetic")
    const inMemory = await openCatalogueFiles(files)
    const whole: { asin: string; name: string }[] = JSON.parse(readFileSync(files.products, "utf8"))
    const random = new Random(3)
    for (const chunkBytes of [1 + random.below(5000), 65_537, 2 ** 22]) {
      const streamed = await openCatalogueFiles(files, { inMemory: 0, chunkBytes })
      expect(streamed.size).toBe(whole.length)
      for (const [i, { asin, name }] of whole.entries()) {
        const listing = streamed.read(i)
        expect(listing.product).toMatchObject({ asin, title: name })
        expect(listing).toEqual(inMemory.read(i))
      }
    }
    const summary = ({ goals, price, search, listed }: Catalogue) => ({
      goals: [goals.size, goals.at(0), goals.at(5000)],
      prices: [price(0), price(999)],
      found: [search("garden lamp with wood"), listed("<c> beauty")],
    })
    expect(summary(await openCatalogue(await openCatalogueFiles(files, { inMemory: 0 })))).toEqual(
      summary(await openCatalogue(inMemory)),
    )
  })

  it("fails if truncated anywhere", async () => {
    const products = readFileSync(join(webshop.folder, "items_shuffle_1000.json"))
    const random = new Random(4)
    for (let round = 0; round < 8; round++) {
      const cut = products.subarray(0, random.below(products.length - 2))
      const path = join(folder, "cut.json")
      writeFileSync(path, cut)
      const opened = openCatalogueFiles({ products: path, attributes: join(webshop.folder, "items_ins_v2_1000.json") })
      await expect(opened).rejects.toMatchObject({ code: "BAD_DATA", message: expect.stringContaining("cut.json") })
    }
  })

  it("has the goals of 13 people", async () => {
    const { goals } = await openCatalogue(await openCatalogueFiles(findCatalogue(webshop.folder, "human")))
    const written = Object.values(
      webshop.readJson<Record<string, { instruction: string }[]>>("items_human_ins.json"),
    ).flat()
    expect(goals.size).toBe(13)
    const texts = Array.from({ length: 13 }, (_, i) =>
      goals.at(i).instruction.replace(/, and price lower than \d+0\.00 dollars$/, ""),
    )
    expect(texts.sort()).toEqual(written.map(({ instruction }) => instruction.replace(/^\.+|\.+$/g, "")).sort())
  })
})
