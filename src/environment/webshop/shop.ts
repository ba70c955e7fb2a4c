import { Random } from "../../util/random.ts"
import { strip } from "../python-text.ts"
import type { Catalogue } from "./catalogue.ts"
import { searchLimit } from "./catalogue.ts"
import type { Goal } from "./goals.ts"
import type { NounTagger } from "./nouns.ts"
import { button, doneTexts, itemTexts, node, resultsTexts, type SubPage, subPages, subPageTexts } from "./pages.ts"
import type { Product } from "./product.ts"
import { judge, type Verdict } from "./reward.ts"

/** Immutable page with its links. */
export interface Page {
  /** Visible texts in order, without those of the heading. */
  readonly texts: readonly string[]
  /** Texts before `texts`, such as the instruction; empty on the last page. */
  readonly heading: readonly string[]
  readonly hasSearchBar: boolean
  /** Target pages by the text of the link, in the order of the page; undefined for the search button, which has no effect. */
  readonly links: ReadonlyMap<string, (() => Page) | undefined>
  /** Chosen options of the current product, which the page does not show. */
  readonly chosen?: ReadonlyMap<string, string>
  /** Score of the purchase, on the last page. */
  readonly verdict?: Verdict
}

/** WebShop's text environment (web_agent_site/envs/web_agent_text_env.py) for one goal. */
export class Shop {
  readonly #catalogue: Catalogue
  readonly #goal: Goal
  readonly #resultsPerPage: number
  readonly #nouns: NounTagger
  readonly #instruction: readonly string[]
  readonly #random: Random

  constructor(catalogue: Catalogue, goal: Goal, { resultsPerPage, nouns }: ShopOptions) {
    this.#catalogue = catalogue
    this.#goal = goal
    this.#resultsPerPage = resultsPerPage
    this.#nouns = nouns
    this.#instruction = ["Instruction:", ...node(goal.instruction)]
    // `<r>` is random in the original. Here the same actions for a goal must give the same pages.
    this.#random = new Random(0).derive("webshop random products", goal.instruction)
  }

  /** First page. */
  index(): Page {
    return {
      heading: ["WebShop", ...this.#instruction],
      texts: [button.search],
      hasSearchBar: true,
      links: new Map([[button.search.toLowerCase(), undefined]]),
    }
  }

  /** Page after an action. Searches work on every page, clicks only on links; other actions return the same page. */
  act(page: Page, action: string): Page {
    const { name, argument } = readCommand(action)
    if (name === "search" && argument !== undefined) return this.#results(this.#find(argument), 1)
    if (name === "click" && argument !== undefined) return page.links.get(argument)?.() ?? page
    return page
  }

  /** Products for keywords: results of the search engine, or a list of products if the first word is `<r>`, `<a>`, `<c>` or `<q>`. */
  #find(keywords: string): readonly number[] {
    const [kind, ...words] = keywords.split(" ")
    if (kind === "<r>") {
      const { size } = this.#catalogue
      const drawn = new Set<number>()
      while (drawn.size < Math.min(searchLimit, size)) drawn.add(this.#random.below(size))
      return [...drawn]
    }
    if (kind === "<c>") return this.#catalogue.listed(`<c> ${strip(words[0] ?? "")}`)
    if (kind === "<a>" || kind === "<q>") return this.#catalogue.listed(`${kind} ${strip(words.join(" "))}`)
    return this.#catalogue.search(keywords)
  }

  #results(found: readonly number[], page: number): Page {
    const from = (page - 1) * this.#resultsPerPage
    const shown = found
      .slice(from, from + this.#resultsPerPage)
      .map((index) => ({ index, product: this.#catalogue.product(index) }))
    const links = new Map<string, () => Page>([[button.back.toLowerCase(), () => this.index()]])
    if (page > 1) links.set(button.previous.toLowerCase(), () => this.#results(found, page - 1))
    // There is no last page: pages after the results are empty.
    links.set(button.next.toLowerCase(), () => this.#results(found, page + 1))
    const back = () => this.#results(found, page)
    for (const { index, product } of shown) {
      links.set(product.asin.toLowerCase(), () => this.#item({ index, product, back, options: new Map() }))
    }
    const products = shown.map(({ product }) => product)
    return this.#page(resultsTexts(products, page, found.length), links)
  }

  #item(item: Item): Page {
    const { product, back, options } = item
    const buttons: [string, () => Page][] = [
      [button.back.toLowerCase(), () => this.index()],
      [button.previous.toLowerCase(), back],
      ...subPages.map((name): [string, () => Page] => [name.toLowerCase(), () => this.#subPage(item, name)]),
      [button.buy.toLowerCase(), () => this.#buy(item)],
    ]
    const links = new Map(buttons)
    for (const [name, values] of product.options) {
      // A value of several options belongs to the last of them.
      for (const value of values)
        links.set(value, () => this.#item({ ...item, options: new Map(options).set(name, value) }))
    }
    // A button takes precedence over an option value of the same name.
    for (const [name, effect] of buttons) links.set(name, effect)
    return this.#page(itemTexts(product), links, options)
  }

  #subPage(item: Item, name: SubPage): Page {
    const links = new Map([
      [button.back.toLowerCase(), () => this.index()],
      [button.previous.toLowerCase(), () => this.#item(item)],
    ])
    return this.#page(subPageTexts(item.product, name), links, item.options)
  }

  #buy({ index, product, options }: Item): Page {
    const purchase = { product, options, price: this.#catalogue.price(index) }
    const verdict = judge(purchase, this.#goal, this.#nouns)
    return { heading: [], texts: doneTexts(purchase, verdict), hasSearchBar: false, links: new Map(), verdict }
  }

  #page(texts: readonly string[], links: Page["links"], chosen: Item["options"] = new Map()): Page {
    return { heading: this.#instruction, texts, hasSearchBar: false, links, chosen }
  }
}

export interface ShopOptions {
  readonly resultsPerPage: number
  readonly nouns: NounTagger
}

/** State of a product page. */
interface Item {
  readonly index: number
  readonly product: Product
  /** Page of results that led to the product. */
  readonly back: () => Page
  readonly options: ReadonlyMap<string, string>
}

/** Text of a page in WebShop's text mode. */
export function pageText({ heading, texts }: Page): string {
  return [...heading, ...texts].join(" [SEP] ")
}

/**
 * Splits `name[argument]` as Python's `re.match(r"(.+)\[(.+)\]", action)` does, with the argument in lower case. The last `]` of the first
 * line ends the argument; the last `[` before a non-empty argument begins it. No regular expression: it would take quadratic time on a
 * long sequence of brackets.
 */
export function readCommand(action: string): { name: string; argument: string | undefined } {
  const end = action.indexOf("\n")
  const line = end < 0 ? action : action.slice(0, end)
  const close = line.lastIndexOf("]")
  const open = close < 2 ? -1 : line.lastIndexOf("[", close - 2)
  if (open < 1) return { name: action, argument: undefined }
  return { name: line.slice(0, open), argument: line.slice(open + 1, close).toLowerCase() }
}
