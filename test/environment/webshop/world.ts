import { openCatalogue, type ProductSource } from "../../../src/environment/webshop/catalogue.ts"
import type { Goal } from "../../../src/environment/webshop/goals.ts"
import { contentWords } from "../../../src/environment/webshop/nouns.ts"
import type { Product } from "../../../src/environment/webshop/product.ts"
import { Shop } from "../../../src/environment/webshop/shop.ts"

/** A lamp with two options, to vary. */
export function product(changes: Partial<Product> = {}): Product {
  return {
    asin: "LAMP1",
    title: "Bright Garden Lamp",
    description: "Stands outside.",
    bullets: ["Sturdy pole", "Warm glow"],
    prices: [22.5],
    priceTag: "$22.5",
    options: new Map([
      ["color", ["navy blue", "red"]],
      ["size", ["small", "large"]],
    ]),
    attributes: ["weather proof", "low energy"],
    category: "garden",
    query: "garden lamps",
    productCategory: "Shop › Garden › Lamps",
    ...changes,
  }
}

/** A goal that the lamp meets. */
export function goal(changes: Partial<Goal> = {}): Goal {
  return {
    asin: "LAMP1",
    instruction: "a weather proof lamp",
    attributes: ["weather proof"],
    options: { color: "navy blue", size: "large" },
    priceUpper: 30,
    name: "Bright Garden Lamp",
    category: "garden",
    query: "garden lamps",
    productCategory: "Shop › Garden › Lamps",
    weight: 1,
    ...changes,
  }
}

export function sourceOf(products: readonly Product[]): ProductSource {
  return {
    size: products.length,
    read: (index) => ({ product: products[index]!, instructions: [] }),
  }
}

export async function shopOf(products: readonly Product[], wanted: Goal = goal(), resultsPerPage = 10): Promise<Shop> {
  return new Shop(await openCatalogue(sourceOf(products)), wanted, { resultsPerPage, nouns: contentWords })
}
