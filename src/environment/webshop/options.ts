import { abortSignal, boolean, callback, integer, oneOf, string } from "../../options/field.ts"
import type { OptionsOf, Resolved } from "../../options/table.ts"
import { GigpoError } from "../../util/errors.ts"
import { agentFields } from "../agent.ts"
import { readOptions } from "../options.ts"
import type { Goal } from "./goals.ts"
import { contentWords, type NounTagger } from "./nouns.ts"

export const webShopFields = {
  ...agentFields<Goal>(),
  data: string(
    undefined,
    "Folder with WebShop's catalogue files: `items_shuffle_1000.json` with `items_ins_v2_1000.json`, or the full " +
      "`items_shuffle.json` with `items_ins_v2.json`; for human goals `items_human_ins.json` too.",
    { defaultText: "without it and without `products` the shop sells a generated catalogue" },
  ),
  products: string(undefined, "File of products, where it lies elsewhere or is called otherwise. Needs `attributes`."),
  attributes: string(undefined, "File of attributes and instructions."),
  humanGoals: string(undefined, "File of the instructions that people wrote. Needed for human goals."),
  goals: oneOf(
    "synthetic",
    ["synthetic", "human"],
    "Goals made from the catalogue, as in verl-agent, or those that people wrote.",
  ),

  size: integer(300, "Products of the generated catalogue; 10 to 1,000,000.", { min: 10, max: 1_000_000 }),
  detail: oneOf(
    "full",
    ["full", "short"],
    'How the generated catalogue reads. "full": titles, descriptions and options about as long as real ones. "short": titles ' +
      "of three or four words from a small vocabulary, one or two attributes, two or three values an option, for small models " +
      "trained from scratch.",
  ),
  catalogueSeed: integer(1, "Which generated catalogue.", { min: 0 }),

  resultsPerPage: integer(10, "Products on a page of results; 1 to 50. Fewer make shorter pages for small models.", {
    min: 1,
    max: 50,
  }),
  maxSteps: integer(15, "Steps after which an episode is cut off; 1 to 1000.", { min: 1, max: 1000 }),
  reward: oneOf(
    "success",
    ["success", "score"],
    'Reward of the last step. "success": 10 for a perfect purchase, else 0. "score": 10 times WebShop\'s own reward.',
  ),
  anchor: oneOf(
    "page",
    ["page", "state"],
    'What steps are grouped by. "page": the text that is shown, as in verl-agent. It does not tell which options are chosen, ' +
      'so steps before and after a choice count as equal. "state" appends the chosen options. Neither tells which search led to ' +
      "a page.",
  ),
  admissible: boolean(true, "Whether the prompt lists the actions."),
  nouns: callback(contentWords as NounTagger, "Finds the nouns by which titles are compared.", {
    defaultText: "`contentWords`: all words of letters but stop words",
  }),
  signal: abortSignal("Aborts the loading of the catalogue."),
}

/** Options of `webshop`. */
export type WebShopOptions = OptionsOf<typeof webShopFields>
export type ResolvedOptions = Resolved<typeof webShopFields>

/** Fills in the defaults. Throws `BAD_CONFIG` where options are unknown, wrong, lack another or have nothing to do. */
export function resolveOptions(options: WebShopOptions): ResolvedOptions {
  const resolved = readOptions("webshop", options, webShopFields)
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
