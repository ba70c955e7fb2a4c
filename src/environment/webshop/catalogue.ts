import { Bm25Index } from "../../retrieval/bm25.ts"
import { PythonRandom } from "../mersenne-twister.ts"
import { GoalTable } from "./goals.ts"
import type { Instruction, Product } from "./product.ts"
import { productText } from "./product-text.ts"

/** A product, and what somebody may want of it. */
export interface Listing {
  readonly product: Product
  readonly instructions: readonly Instruction[]
}

/** Where products come from: files or a generator. Products are numbered; reading one may touch the disk, for microseconds. */
export interface ProductSource {
  readonly size: number
  read(index: number): Listing
}

/** Everything that the shop's pages, searches and rewards need of the products. */
export interface Catalogue {
  readonly size: number
  product(index: number): Product
  /** The number of the product with this asin. */
  indexOf(asin: string): number | undefined
  /** What the reward takes a product to cost, in dollars. */
  price(index: number): number
  /** The best 50 products for a text, best first. */
  search(text: string): number[]
  /** The products of `<c> category`, `<q> query` or `<a> attribute`, in the catalogue's order. */
  listed(kind: string): readonly number[]
  readonly goals: GoalTable
}

/** The seed of the price draws. The original leaves them to chance; this one gives the prices of the recorded catalogue. */
const priceSeed = 42

/** Hits of one search, as in WebShop. */
export const searchLimit = 50

/** Reads every product once: for the search index, for prices and goals, and for the lists by category, query and attribute. */
export async function openCatalogue(given: ProductSource, signal?: AbortSignal): Promise<Catalogue> {
  const source = withMemory(given)
  const random = new PythonRandom(priceSeed)
  // One word was drawn before the recorded prices.
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
  // The limits of the goals come from the same stream of numbers, after all prices.
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

/** Listings kept ready: pages show the same few again and again, and a small catalogue stays in memory whole. */
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
