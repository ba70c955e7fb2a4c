import type { Product } from "./product.ts"

/**
 * Text of a product for the search index: title, description, first bullet point and options, in lower case
 * (`name: value, value, and name: value`), separated by spaces. Equal to the `contents` of WebShop's public index.
 */
export function productText(product: Pick<Product, "title" | "description" | "bullets" | "options">): string {
  const options = Array.from(product.options, ([name, values]) => `${name}: ${values.join(", ")}`).join(", and ")
  return [product.title, product.description, product.bullets[0] ?? "", options].join(" ").toLowerCase()
}
