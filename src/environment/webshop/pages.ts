import { strip } from "../python-text.ts"
import type { Product } from "./product.ts"
import { formatFloat, formatJson } from "./python-text.ts"
import type { Purchase, Verdict } from "./reward.ts"

/**
 * Visible texts of WebShop's pages, as its text mode extracts them from the HTML, without the instruction at the beginning of pages.
 */

export const button = {
  search: "Search",
  back: "Back to Search",
  previous: "< Prev",
  next: "Next >",
  buy: "Buy Now",
} as const

export const subPages = ["Description", "Features", "Reviews"] as const
export type SubPage = (typeof subPages)[number]

/** Texts of a page of results. `products` are those of the page, `total` is the number of all results. */
export function resultsTexts(products: readonly Product[], page: number, total: number): string[] {
  const items = products.flatMap(({ asin, title, priceTag }) => [...node(asin), ...node(title), ...node(priceTag)])
  const turn = page > 1 ? [button.previous, button.next] : [button.next]
  return [button.back, `Page ${page} (Total results: ${total})`, ...turn, ...items]
}

export function itemTexts({ options, title, priceTag }: Product): string[] {
  const choices = Array.from(options, ([name, values]) => [...node(name), ...values.flatMap(node)]).flat()
  const rating = "Rating: N.A."
  return [
    button.back,
    button.previous,
    ...choices,
    ...node(title),
    `Price: ${priceTag}`,
    rating,
    ...subPages,
    button.buy,
  ]
}

export function subPageTexts({ description, bullets }: Product, name: SubPage): string[] {
  // Every bullet follows a space, so an empty bullet still gives a text.
  const lines = { Description: [description], Features: bullets.map((bullet) => ` ${bullet}`), Reviews: [] }[name]
  return [button.back, button.previous, ...lines.flatMap(node)]
}

// Names of fields that the original's template leaves empty. The spelling is WebShop's.
const blankFields = ["attrs", "None", "category", "None", "query", "None", "product category", "None"]
const target = ["asin", "options", "attrs", "price upper", "instuction text", "category", "product category", "query"]

export function doneTexts({ product, options }: Purchase, { reward }: Verdict): string[] {
  return [
    ...["Thank you for shopping with us!", "Your code:", "None", "(Paste it in your MTurk interface.)", "Purchased"],
    ...["asin", product.asin, "options", formatJson(options), ...blankFields],
    ...["Target", ...target, "Goal", "None"],
    ...["Reward", "Your score (min 0.0, max 1.0)", formatFloat(reward), "Reward Details", "None"],
  ]
}

/**
 * Text between two tags. The original's HTML parser reduces white space to one line break, which is skipped, or to one space, which gives an
 * empty text.
 */
export function node(text: string): string[] {
  if (text === "" || (/^[ \t\n\f\r]+$/.test(text) && text.includes("\n"))) return []
  return [strip(text)]
}
