import { colours, normaliseColour } from "./colours.ts"
import type { Goal } from "./goals.ts"
import type { NounTagger } from "./nouns.ts"
import type { Product } from "./product.ts"
import { reprBody } from "./python-text.ts"
import { tokenSetRatio } from "./token-set-ratio.ts"

/** Bought product with its options. */
export interface Purchase {
  readonly product: Product
  /** Price in dollars. */
  readonly price: number
  /** Chosen values by option name. */
  readonly options: ReadonlyMap<string, string>
}

/** Score of a purchase by WebShop's criteria; shares and weights are from 0 to 1. */
export interface Verdict {
  readonly reward: number
  readonly typeReward: number
  readonly queryMatch: boolean
  readonly categoryMatch: boolean
  readonly titleScore: number
  /** Attributes that are met, of those required. */
  readonly attributes: Share
  /** Options that are met, of those required. */
  readonly options: Share
  readonly priceMet: boolean
}

export interface Share {
  readonly met: number
  readonly of: number
}

/**
 * Computes the reward of WebShop (web_agent_site/engine/goal.py):
 *
 *     r = r_type · (attributes met + options met + [price ≤ limit]) / (attributes + options + 1)
 */
export function judge(purchase: Purchase, goal: Goal, nouns: NounTagger): Verdict {
  const type = judgeType(purchase.product, goal, nouns)
  const attributes = share(goal.attributes, (attribute) => hasAttribute(purchase.product, attribute))
  const options = judgeOptions(purchase.options, goal.options)
  const priceMet = purchase.price <= goal.priceUpper
  const met = attributes.met + options.met + (priceMet ? 1 : 0)
  return {
    reward: (met / (attributes.of + options.of + 1)) * type.typeReward,
    ...type,
    attributes,
    options,
    priceMet,
  }
}

function judgeType({ query, productCategory, title }: Product, goal: Goal, nouns: NounTagger) {
  const queryMatch = query === goal.query
  const goalCategories = categories(goal.productCategory)
  const categoryMatch = [...categories(productCategory)].filter((category) => goalCategories.has(category)).length >= 2
  const bought = new Set(nouns(title))
  const wanted = nouns(goal.name)
  const common = [...new Set(wanted)].filter((noun) => bought.has(noun)).length
  // The numerator uses a set and the denominator a list, as in the original.
  const titleScore = wanted.length === 0 ? 0.2 : common / wanted.length

  let typeReward = queryMatch || categoryMatch || titleScore > 0.2 ? 1 : 0.5
  if (titleScore < 0.1) typeReward = 0.1
  if (titleScore === 0) typeReward = 0
  return { typeReward, queryMatch, categoryMatch, titleScore }
}

function categories(path: string): Set<string> {
  return new Set(path.split("›").map((part) => part.trim()))
}

/** Similarity score above which texts count as equal. */
export const alike = 85

function hasAttribute(product: Product, wanted: string): boolean {
  return (
    product.attributes.some((attribute) => tokenSetRatio(attribute, wanted) > alike) ||
    product.title.toLowerCase().includes(wanted) ||
    product.bullets.join(" ").toLowerCase().includes(wanted) ||
    product.description.toLowerCase().includes(wanted)
  )
}

function judgeOptions(chosen: ReadonlyMap<string, string>, goal: Goal["options"]): Share {
  const values = [...chosen.values()].map(normaliseColour)
  const wishes = Array.isArray(goal) ? goal.map(normaliseColour) : Object.entries(goal).map(comparable)
  return share(wishes, (wish) => values.some((value) => tokenSetRatio(value, wish) > alike))
}

/**
 * Text of a required option for the comparison. In the original, options of goals from the catalogue are Python tuples (name, value). Its
 * search for a colour compares whole elements, and the score uses the printed tuple, so the bought value need only be part of it. A bought
 * value that is reduced to a colour outside the required text (`rectangular` to `tan`) never matches. This affects 458 of the 6,910 goals of
 * WebShop's small catalogue.
 */
function comparable([name, value]: [string, string]): string {
  const colour = colours.find((colour) => colour === name || colour === value)
  return colour ?? `${reprBody(name)} ${reprBody(value)}`
}

function share<T>(wishes: readonly T[], isMet: (wish: T) => boolean): Share {
  return { met: wishes.filter(isMet).length, of: wishes.length }
}
