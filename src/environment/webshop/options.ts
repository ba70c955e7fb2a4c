import { abortSignal, boolean, callback, integer, oneOf, string } from "../../options/field.ts"
import type { OptionsOf, ResolvedOf } from "../../options/table.ts"
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
    { defaultText: "a generated catalogue, unless `products` is given" },
  ),
  products: string(undefined, "File of products, if it has another name or folder. Needs `attributes`."),
  attributes: string(undefined, "File of attributes and instructions."),
  humanGoals: string(undefined, "File of instructions written by people. Needed for human goals."),
  goals: oneOf(
    "synthetic",
    ["synthetic", "human"],
    "Goals generated from the catalogue, as in verl-agent, or written by people.",
  ),

  size: integer(300, "Number of products of the generated catalogue; 10 to 1,000,000.", { min: 10, max: 1_000_000 }),
  detail: oneOf(
    "full",
    ["full", "short"],
    'Text length of the generated catalogue. "full": titles, descriptions and options about as long as real ones. "short": titles ' +
      "of three or four words from a small vocabulary, one or two attributes, two or three values per option, for small models " +
      "trained from scratch.",
  ),
  catalogueSeed: integer(1, "Seed of the generated catalogue.", { min: 0 }),

  resultsPerPage: integer(
    10,
    "Number of products on a page of results; 1 to 50. Small values give short pages for small models.",
    {
      min: 1,
      max: 50,
    },
  ),
  maxSteps: integer(15, "Maximum number of steps of an episode; 1 to 1000.", { min: 1, max: 1000 }),
  reward: oneOf(
    "success",
    ["success", "score"],
    'Reward of the last step. "success": 10 for a perfect purchase, else 0. "score": 10 times WebShop\'s own reward.',
  ),
  anchor: oneOf(
    "page",
    ["page", "state"],
    'Anchor state of a step. "page": the shown text, as in verl-agent. It does not contain the chosen options, ' +
      'so steps before and after a choice have equal anchors. "state": the text with the chosen options. Neither contains the search ' +
      "that led to the page.",
  ),
  admissible: boolean(true, "Whether the prompt lists the actions."),
  nouns: callback(
    contentWords as NounTagger,
    "Function that returns the nouns of a title, by which titles are compared.",
    {
      defaultText: "`contentWords`: all words of letters except stop words",
    },
  ),
  signal: abortSignal("Aborts the loading of the catalogue."),
}

/** Options of `webshop`. */
export type WebShopOptions = OptionsOf<typeof webShopFields>
export type ResolvedOptions = ResolvedOf<typeof webShopFields>

/** Options with defaults. Throws `BAD_CONFIG` for options that are unknown, invalid, incomplete or without effect. */
export function resolveOptions(options: WebShopOptions): ResolvedOptions {
  const resolved = readOptions("webshop", options, webShopFields)
  const { data, products, attributes, humanGoals, goals } = resolved
  if (data === undefined && products === undefined) {
    if (goals === "human" || attributes !== undefined || humanGoals !== undefined)
      fail("human goals and attributes need real products; give data or products too")
    return resolved
  }
  for (const key of ["size", "detail", "catalogueSeed"] as const)
    if (options[key] !== undefined) fail(`${key} is for the generated catalogue; omit it if data or products is given`)
  if (humanGoals !== undefined && goals !== "human") fail('humanGoals is for goals: "human"; omit it or set goals')
  if (products === undefined) return resolved
  if (attributes === undefined) fail("products needs attributes, the file items_ins_v2*.json that belongs to it")
  if (data === undefined && goals === "human" && humanGoals === undefined)
    fail('goals: "human" needs humanGoals, the file items_human_ins.json')
  if (data !== undefined && (goals !== "human" || humanGoals !== undefined))
    fail("data is not used; omit it if products and the other files are given")
  return resolved
}

function fail(problem: string): never {
  throw new GigpoError("BAD_CONFIG", `webshop: ${problem}.`)
}
