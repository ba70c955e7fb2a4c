import { Bm25Index } from "../../retrieval/bm25.ts"
import { PythonRandom } from "../mersenne-twister.ts"
import { GoalTable } from "./goals.ts"
import type { Instruction, Product } from "./product.ts"
import { productText } from "./product-text.ts"

/** Product with its instructions. */
export interface Listing {
  readonly product: Product
  readonly instructions: readonly Instruction[]
}

/** Source of numbered products: files or a generator. Reading a product may access the disk. */
export interface ProductSource {
  readonly size: number
  read(index: number): Listing
}

/** Products with search index, prices, lists and goals. */
export interface Catalogue {
  readonly size: number
  product(index: number): Product
  /** Number of the product with an asin. */
  indexOf(asin: string): number | undefined
  /** Price of a product for the reward, in dollars. */
  price(index: number): number
  /** Best 50 products for a text, best first. */
  search(text: string): number[]
  /** Products of `<c> category`, `<q> query` or `<a> attribute`, in the order of the catalogue. */
  listed(kind: string): readonly number[]
  readonly goals: GoalTable
}

/** Seed of the price draws. The original is not seeded; this seed gives the prices of the recorded catalogue. */
const priceSeed = 42

/** Maximum number of results of a search, as in WebShop. */
export const searchLimit = 50

/** Reads every product once and builds the search index, prices, goals, and the lists by category, query and attribute. */
export async function openCatalogue(given: ProductSource, signal?: AbortSignal): Promise<Catalogue> {
  const source = withMemory(given)
  const random = new PythonRandom(priceSeed)
  // The recorded prices follow one other draw.
  random.getrandbits(32)
  const prices = new Float64Array(source.size)
  const numbers = new Map<string, number>()
  const lists = new Map<string, number[]>()
  const list = (kind: string, index: number) => {
    const known = lists.get(kind)
    if (!known) lists.set(kind, [index])
    else if (known.at(-1) !== index) known.push(index)
  }
  const goals = new GoalTable(source)

  const index = await Bm25Index.build(documents(), { ...(signal && { signal }) })
  // The price limits of the goals use the same random stream, after all prices.
  await goals.close(prices, random, signal)
  return {
    size: source.size,
    product: (number) => source.read(number).product,
    indexOf: (asin) => numbers.get(asin),
    price: (number) => prices[number]!,
    search: (text) => index.search(text, searchLimit).map((hit) => hit.document),
    listed: (kind) => lists.get(kind) ?? [],
    goals,
  }

  function* documents() {
    for (let number = 0; number < source.size; number++) {
      const { product, instructions } = source.read(number)
      const [low, high] = product.prices
      prices[number] = high === undefined ? low! : random.uniform(low!, high)
      numbers.set(product.asin, number)
      list(`<c> ${product.category}`, number)
      list(`<q> ${product.query}`, number)
      for (const attribute of product.attributes) list(`<a> ${attribute}`, number)
      goals.add(number, product, instructions)
      yield { id: product.asin, text: productText(product) }
    }
  }
}

/** Number of cached listings: pages repeat few products, and a small catalogue stays in memory as a whole. */
const mostRecent = 5000

function withMemory({ size, read }: ProductSource): ProductSource {
  const recent = new Map<number, Listing>()
  return {
    size,
    read(index) {
      const known = recent.get(index)
      if (known) return known
      const listing = read(index)
      if (recent.size >= mostRecent) recent.clear()
      recent.set(index, listing)
      return listing
    },
  }
}
