import type { Belief } from "./belief.ts"

// Facts and scores of beliefs in WebShop, as in the authors' code of ReBel (arXiv 2605.20061).

/** Phase of a purchase that a page shows: searching, browsing, viewing, selecting or done. */
export function pagePhase(page: string): string {
  const text = page.toLowerCase()
  if (text.includes("thank you") || text.includes("your score")) return "done"
  if (text.includes("buy now")) return /\b(size|color|style|material)\b/.test(text) ? "selecting" : "viewing"
  return text.includes("back to search") ? "browsing" : "searching"
}

/** Phase of a purchase for step groups, by the page alone: buy, browse or search. */
export function groupPage(page: string): string {
  if (page.toLowerCase().includes("buy now")) return "buy"
  return ["Back to Search", "Prev Page", "Next Page"].some((link) => page.includes(link)) ? "browse" : "search"
}

/** Whether actions are those of WebShop. */
export function isShop(actions: readonly string[]): boolean {
  return actions.some((action) => action.startsWith("click["))
}

/** Facts of a WebShop episode, read from its pages and actions. */
export class ShoppingFacts {
  /** Words of the customer's wish with at least three letters. */
  readonly wishes: ReadonlySet<string>
  phase: string = "searching"
  /** Options that were clicked. */
  readonly chosen: Set<string> = new Set()
  /** Attributes that pages named, with the text after the name. */
  readonly attributes: Map<string, string> = new Map()
  /** Names of the links of the page. */
  links: readonly string[] = []

  /** @param instruction - what the customer says */
  constructor(instruction: string) {
    this.wishes = new Set(instruction.toLowerCase().match(/\b\w{3,}\b/g) ?? [])
  }

  /** Reads a page, and the action that led to it. */
  read(page: string, actions: readonly string[] = [], action = ""): void {
    this.phase = pagePhase(page)
    this.links = actions.map((one) => /^click\[(.+)\]$/s.exec(one.toLowerCase())?.[1] ?? one.toLowerCase())
    const clicked = /^click\[(.+)\]/.exec(action.toLowerCase().trim())?.[1]?.trim()
    const isLink = clicked === undefined || /^b\d+/.test(clicked) || navigation.includes(clicked)
    if (!isLink) this.chosen.add(clicked)
    for (const [, name, value] of page.toLowerCase().matchAll(/\b(size|color|style|material)\b[:\s]+([^[,\n]+)/g))
      this.attributes.set(name!, value!.trim())
  }
}

const navigation = ["buy now", "back to search", "< prev", "next >"]

/**
 * r_state: agreement of a belief with the facts, 0 to 1: wishes that the customer has 40 %, confirmed attributes that are seen 35 %, and 25 %
 * unless it buys with attributes that are not confirmed.
 */
export function shoppingScore({ wishes, confirmed, open, phase }: Belief, facts: ShoppingFacts): number {
  const own = Object.entries(wishes).map(lowerCase)
  const grounded = own.filter((pair) => pair.some((word) => facts.wishes.has(word))).length
  const goal = own.length === 0 ? 0.3 : Math.min(1, 0.4 + (0.6 * grounded) / own.length)
  const isBrowsed = facts.phase === "viewing" || facts.phase === "selecting"
  const scores = Object.entries(confirmed).map((pair) => confirmedScore(lowerCase(pair), facts, isBrowsed))
  const seen = scores.length === 0 ? (isBrowsed ? 0.4 : 0.7) : scores.reduce((sum, one) => sum + one, 0) / scores.length
  const gate = phase === "buying" ? Number(open === 0) : 0.8
  return 0.4 * goal + 0.35 * seen + 0.25 * gate
}

function confirmedScore(
  [name, value]: readonly [string, string],
  { attributes, chosen, links, wishes }: ShoppingFacts,
  isBrowsed: boolean,
): number {
  const known = attributes.get(name)
  if (known !== undefined && !known.includes(value) && !value.includes(known)) return 0
  const evidence = new Set([...chosen, ...links, ...attributes.keys(), ...attributes.values()])
  if (evidence.has(value) || evidence.has(name)) return 1
  if (wishes.has(value) || wishes.has(name)) return 0.6
  return isBrowsed ? 0.2 : 0.7
}

/** Words of predictions that many pages contain; they count in pairs only. */
export const shoppingNoise: readonly string[] = ["search", "click", "back", "item", "page", "product"]

function lowerCase([name, value]: readonly [string, string]): readonly [string, string] {
  return [name.toLowerCase(), value.toLowerCase()]
}
