import { describe, expect, it } from "vitest"
import { openCatalogue } from "../../../src/environment/webshop/catalogue.ts"
import { type GeneratedOptions, generatedProducts } from "../../../src/environment/webshop/generate/generate.ts"
import { attributes as phrases } from "../../../src/environment/webshop/generate/words.ts"
import { webshop } from "../../../src/environment/webshop/webshop.ts"
import { Random } from "../../../src/util/random.ts"
import { present, readJson, reason } from "./data.ts"
import { playExpert, take } from "./play.ts"

const full: GeneratedOptions = { size: 300, seed: 1, detail: "full" }
const short: GeneratedOptions = { size: 40, seed: 1, detail: "short" }

function all({ size, read } = generatedProducts(full)) {
  return Array.from({ length: size }, (_, i) => read(i))
}

describe("the generated catalogue", () => {
  it("is determined by its seed, and each product by its number", () => {
    expect(all(generatedProducts(full))).toEqual(all(generatedProducts(full)))
    expect(all(generatedProducts({ ...full, seed: 2 }))).not.toEqual(all())
    const million = generatedProducts({ ...full, size: 1_000_000 })
    expect(million.read(123)).toEqual(generatedProducts(full).read(123))
    expect(million.read(999_999).product.asin).toMatch(/^GX[0-9A-Z]{8}$/)
  })

  it.each([full, { ...full, size: 3000 }, short, { ...short, size: 400 }])("is plausible: %j", (options) => {
    const listings = all(generatedProducts(options))
    expect(new Set(listings.map(({ product }) => product.asin)).size).toBe(options.size)
    for (const { product, instructions } of listings) {
      expect(product.asin.length).toBeLessThanOrEqual(10)
      expect(Math.min(...product.prices)).toBeGreaterThan(0)
      expect(product.prices[0]).toBeLessThanOrEqual(product.prices.at(-1)!)
      const values = [...product.options.values()].flat()
      expect(new Set(values).size).toBe(values.length)
      expect(instructions).toHaveLength(1)
      const [{ attributes, text }] = instructions as [(typeof instructions)[0]]
      for (const attribute of attributes) {
        expect(product.attributes).toContain(attribute)
        expect(text).toContain(attribute)
      }
    }
  })

  it("has realistic variety in full detail", () => {
    const products = all().map(({ product }) => product)
    const kindsOf = <T>(what: (product: (typeof products)[0]) => T) => new Set(products.map(what))
    expect([...kindsOf((product) => product.options.size)].sort()).toEqual([0, 1, 2])
    expect([...kindsOf((product) => product.prices.length)].sort()).toEqual([1, 2])
    expect(products.some((product) => product.priceTag === "$100.0")).toBe(true)
    expect(kindsOf((product) => product.query).size).toBeGreaterThan(30)
    expect(kindsOf((product) => product.title).size).toBe(300)
  })

  it("has attributes without common words", () => {
    const words = phrases.flatMap((phrase) => phrase.split(" "))
    expect(new Set(words).size).toBe(words.length)
  })

  it.skipIf(!present)(`has no attribute and no phrase in common with the real one${reason}`, () => {
    const texts = ["items_ins_v2_1000.json", "items_human_ins.json"].map((name) =>
      JSON.stringify(readJson(name)).toLowerCase(),
    )
    for (const phrase of phrases) for (const text of texts) expect(text).not.toContain(phrase)
    const openings = new Set(all().map(({ instructions }) => instructions[0]!.text.split(" ").slice(0, 3).join(" ")))
    expect(openings.size).toBe(3)
    for (const opening of openings) for (const text of texts) expect(text).not.toContain(opening)
  })

  it("is short in short detail: few words, and the first 440 products differ in more than brand and price", () => {
    const listings = all(generatedProducts({ ...short, size: 440 }))
    const titles = listings.map(({ product }) => product.title.split(" "))
    for (const title of titles) expect([3, 4]).toContain(title.length)
    expect(new Set(titles.map((title) => title.slice(1).join(" "))).size).toBe(440)
    expect(new Set(titles.flat()).size).toBeLessThan(30)
    for (const { product } of listings)
      for (const values of product.options.values()) expect([2, 3]).toContain(values.length)
  })

  it.each([full, short, { ...short, size: 12, seed: 9 }])(
    "has disjoint goals in training and test: %j",
    async ({ size, seed, detail }) => {
      const environment = await webshop({ size, catalogueSeed: seed, detail })
      const { goals } = await openCatalogue(generatedProducts({ size, seed, detail }))
      const test = take(environment, "test", 1000)
      expect(test).toHaveLength(Math.min(500, Math.ceil(goals.size / 5)))
      expect(take(environment, "test", 1000, 2)).toEqual(test)
      const train = take(environment, "train", 20 * Math.min(goals.size, 200))
      const texts = new Set(test.map(({ instruction }) => instruction))
      expect(train.filter(({ instruction }) => texts.has(instruction))).toEqual([])
      expect(new Set(train.map(({ instruction }) => instruction)).size).toBeGreaterThan(test.length)
    },
  )

  it.each([
    { size: 300 },
    { size: 2000, catalogueSeed: 3 },
    { size: 20, detail: "short" as const, resultsPerPage: 3 },
    { size: 60, detail: "short" as const, resultsPerPage: 3 },
    { size: 400, detail: "short" as const, resultsPerPage: 5, catalogueSeed: 5 },
  ])("is solved by the expert, in short and valid replies: %j", async (options) => {
    const environment = await webshop(options)
    const tasks = [...take(environment, "test", 200), ...take(environment, "train", 200)]
    let solved = 0
    for (const task of tasks) {
      const { success, steps, valid, longest } = await playExpert(environment, task)
      solved += success
      expect(valid).toBe(true)
      expect(steps).toBeLessThanOrEqual(15)
      expect(longest).toBeLessThan(300)
    }
    expect(solved / tasks.length).toBeGreaterThanOrEqual(0.98)
  })

  it("orders goals by one shuffle with seed 233", async () => {
    // CPython: random.seed(233); l = list(range(6910)); random.shuffle(l).
    const source = generatedProducts({ size: 6910, seed: 1, detail: "short" })
    const single = {
      size: 6910,
      read: (i: number) => ({ ...source.read(i), product: { ...source.read(i).product, options: new Map() } }),
    }
    const { goals } = await openCatalogue(single)
    const places = [3963, 2638, 2193, 1856, 4358, 6149, 2504, 3220]
    expect(places.map((_, place) => goals.at(place))).toEqual(places.map((number) => goals.inCatalogueOrder(number)))
    expect(goals.at(6909)).toEqual(goals.inCatalogueOrder(5590))
  })

  it("determines training goals by the random generator", async () => {
    const environment = await webshop({ detail: "short", size: 40 })
    expect(take(environment, "train", 50, 1)).toEqual(take(environment, "train", 50, 1))
    expect(take(environment, "train", 50, 1)).not.toEqual(take(environment, "train", 50, 2))
    const used = new Random(1)
    used.uint32()
    const [first] = environment.tasks("train", used)
    expect(first).toEqual(take(environment, "train", 1)[0])
  })
})
