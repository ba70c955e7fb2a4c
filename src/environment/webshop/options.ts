import { GigpoError } from "../../errors.ts"
import { type AgentOptions, agentFields } from "../agent.ts"
import {
  abortSignal,
  callback,
  type Fields,
  flag,
  oneOf,
  optional,
  type Resolved,
  readOptions,
  text,
  whole,
} from "../options.ts"
import type { Goal } from "./goals.ts"
import { contentWords, type NounTagger } from "./nouns.ts"

export interface WebShopOptions extends AgentOptions<Goal> {
  /**
   * Folder with WebShop's catalogue files: `items_shuffle_1000.json` with `items_ins_v2_1000.json`, or the full
   * `items_shuffle.json` with `items_ins_v2.json`; for human goals `items_human_ins.json` too. Without it and without `products`
   * the shop sells a generated catalogue.
   */
  readonly data?: string | undefined
  /** File of products, where it lies elsewhere or is called otherwise. Needs `attributes`. */
  readonly products?: string | undefined
  /** File of attributes and instructions. */
  readonly attributes?: string | undefined
  /** File of the instructions that people wrote. Needed for human goals. */
  readonly humanGoals?: string | undefined
  /** Goals made from the catalogue, or those that people wrote. Default "synthetic", as in verl-agent. */
  readonly goals?: "synthetic" | "human"

  /** Products of the generated catalogue; 10 to 1,000,000. Default 300. */
  readonly size?: number
  /**
   * How the generated catalogue reads. Default "full": titles, descriptions and options about as long as real ones. "short":
   * titles of three or four words from a small vocabulary, one or two attributes, two or three values an option, for small
   * models trained from scratch.
   */
  readonly detail?: "full" | "short"
  /** Which generated catalogue. Default 1. */
  readonly catalogueSeed?: number

  /** Products on a page of results; 1 to 50. Default 10. Fewer make shorter pages for small models. */
  readonly resultsPerPage?: number
  /** Steps after which an episode is cut off; 1 to 1000. Default 15. */
  readonly maxSteps?: number
  /** Reward of the last step. Default "success": 10 for a perfect purchase, else 0. "score": 10 times WebShop's own reward. */
  readonly reward?: "success" | "score"
  /**
   * What steps are grouped by. Default "page": the text that is shown, as in verl-agent. It does not tell which options are
   * chosen, so steps before and after a choice count as equal. "state" appends the chosen options. Neither tells which
   * search led to a page.
   */
  readonly anchor?: "page" | "state"
  /** Whether the prompt lists the actions. Default true. */
  readonly admissible?: boolean
  /** Finds the nouns by which titles are compared. Default `contentWords`: all words of letters but stop words. */
  readonly nouns?: NounTagger | undefined
  /** Aborts the loading of the catalogue. */
  readonly signal?: AbortSignal | undefined
}

const fields: Fields<WebShopOptions> = {
  ...agentFields<Goal>(),
  data: optional(text("")),
  products: optional(text("")),
  attributes: optional(text("")),
  humanGoals: optional(text("")),
  goals: oneOf("synthetic", ["synthetic", "human"]),
  size: whole(300, 10, 1_000_000),
  detail: oneOf("full", ["full", "short"]),
  catalogueSeed: whole(1, 0, Number.MAX_SAFE_INTEGER),
  resultsPerPage: whole(10, 1, 50),
  maxSteps: whole(15, 1, 1000),
  reward: oneOf("success", ["success", "score"]),
  anchor: oneOf("page", ["page", "state"]),
  admissible: flag(true),
  nouns: { ...callback<NounTagger>(), fallback: contentWords },
  signal: abortSignal(),
}

export type ResolvedOptions = Resolved<WebShopOptions>

/** Fills in the defaults. Throws `BAD_CONFIG` at the first option that is unknown, wrong, lacks another or has nothing to do. */
export function resolveOptions(options: WebShopOptions): ResolvedOptions {
  const resolved = readOptions("webshop", options, fields)
  const { data, products, attributes, humanGoals, goals } = resolved
  if (data === undefined && products === undefined) {
    if (goals === "human" || attributes !== undefined || humanGoals !== undefined)
      fail("human goals and attributes belong to real products; give data or products too")
    return resolved
  }
  for (const key of ["size", "detail", "catalogueSeed"] as const)
    if (options[key] !== undefined)
      fail(`${key} is for the generated catalogue; leave it out where data or products is given`)
  if (humanGoals !== undefined && goals !== "human") fail('humanGoals is for goals: "human"; leave it out or set goals')
  if (products === undefined) return resolved
  if (attributes === undefined) fail("products needs attributes, the file items_ins_v2*.json that belongs to it")
  if (data === undefined && goals === "human" && humanGoals === undefined)
    fail('goals: "human" needs humanGoals, the file items_human_ins.json')
  if (data !== undefined && (goals !== "human" || humanGoals !== undefined))
    fail("no file is left to be taken from data; leave it out where products and its other files are given")
  return resolved
}

function fail(problem: string): never {
  throw new GigpoError("BAD_CONFIG", `webshop: ${problem}.`)
}
