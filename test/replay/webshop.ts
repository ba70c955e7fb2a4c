import { openCatalogue } from "../../src/environment/webshop/catalogue.ts"
import { findCatalogue, openCatalogueFiles } from "../../src/environment/webshop/catalogue-files.ts"
import type { Goal } from "../../src/environment/webshop/goals.ts"
import { contentWords } from "../../src/environment/webshop/nouns.ts"
import type { Verdict } from "../../src/environment/webshop/reward.ts"
import { type Page, pageText, Shop } from "../../src/environment/webshop/shop.ts"
import { GigpoError } from "../../src/util/errors.ts"
import type { Difference, Replay } from "./replay.ts"

/** One episode of WebShop's text environment: the goal as WebShop keeps it, and what every action led to. */
interface EpisodeRecord {
  readonly goal: {
    readonly asin: string
    readonly category: string
    readonly query: string
    readonly name: string
    readonly product_category: string
    readonly instruction_text: string
    readonly attributes: readonly string[]
    readonly price_upper: number
    readonly goal_options: Readonly<Record<string, string>> | readonly string[]
    readonly weight?: number
  }
  readonly steps: readonly StepRecord[]
}

interface StepRecord {
  /** The action; null at the start. */
  readonly a: string | null
  readonly obs: string
  readonly avail?: { readonly has_search_bar: boolean; readonly clickables: readonly string[] }
  readonly r: number
  readonly done: boolean
  readonly info?: Readonly<Record<string, unknown>>
}

/**
 * Every page, list of actions, reward, end and part of the reward must be equal. `data` is the folder with the catalogue. Nouns
 * are those of `contentWords`, by which the recordings were made.
 */
export const replayWebshop: Replay = async function* (data, records) {
  const catalogue = await openCatalogue(await openCatalogueFiles(findCatalogue(data, "synthetic")))
  for await (const record of records) {
    if (!isEpisode(record))
      throw new GigpoError("BAD_DATA", "A WebShop recording must hold {goal, steps} on every line.")
    const shop = new Shop(catalogue, readGoal(record.goal), { resultsPerPage: 10, nouns: contentWords })
    let page = shop.index()
    for (const [index, step] of record.steps.entries()) {
      if (step.a !== null) page = shop.act(page, step.a)
      yield stepDifferences(page, step, `step ${index}: ${step.a ?? "start"}`)
    }
  }
}

function stepDifferences(page: Page, step: StepRecord, where: string): Difference[] {
  const differences: Difference[] = []
  const compare = (what: string, expected: unknown, actual: unknown) => {
    const [want, found] = [expected, actual].map((value) => JSON.stringify(value) ?? "nothing") as [string, string]
    if (want !== found) differences.push({ where: `${where}: ${what}`, expected: want, actual: found })
  }
  compare("page", step.obs, pageText(page))
  compare("reward", step.r, page.verdict?.reward ?? 0)
  compare("done", step.done, page.verdict !== undefined)
  if (step.avail) {
    const { has_search_bar, clickables } = step.avail
    compare(
      "actions",
      { has_search_bar, clickables },
      { has_search_bar: page.hasSearchBar, clickables: [...page.links.keys()] },
    )
  }
  if (step.info) {
    const found: Record<string, unknown> = page.verdict ? rewardInfo(page.verdict) : {}
    for (const key of new Set([...Object.keys(step.info), ...Object.keys(found)]))
      compare(key, step.info[key], found[key])
  }
  return differences
}

/** The parts of a reward under WebShop's names. */
export function rewardInfo(verdict: Verdict): Record<string, number | boolean> {
  const { attributes, options } = verdict
  const all = attributes.of + options.of + 1
  return {
    r_type: verdict.typeReward,
    r_att: attributes.met / attributes.of,
    w_att: attributes.of / all,
    query_match: verdict.queryMatch,
    category_match: verdict.categoryMatch,
    title_score: verdict.titleScore,
    ...(options.of > 0 && { r_option: options.met / options.of, w_option: options.of / all }),
    r_price: verdict.priceMet,
    w_price: 1 / all,
  }
}

/** A goal from WebShop's own fields. */
export function readGoal(goal: EpisodeRecord["goal"]): Goal {
  return {
    asin: goal.asin,
    instruction: goal.instruction_text,
    attributes: goal.attributes,
    options: goal.goal_options,
    priceUpper: goal.price_upper,
    name: goal.name,
    category: goal.category,
    query: goal.query,
    productCategory: goal.product_category,
    weight: goal.weight ?? 1,
  }
}

function isEpisode(record: unknown): record is EpisodeRecord {
  const { goal, steps } = (record ?? {}) as Partial<EpisodeRecord>
  return typeof goal?.instruction_text === "string" && Array.isArray(goal.attributes) && Array.isArray(steps)
}
