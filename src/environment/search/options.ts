import { abortSignal, field, integer, number, oneOf, string } from "../../options/field.ts"
import type { OptionsOf, Resolved } from "../../options/table.ts"
import { GigpoError } from "../../util/errors.ts"
import { agentFields, historyField, thinkingField } from "../agent.ts"
import { readOptions } from "../options.ts"
import type { Match } from "./answer.ts"
import type { SearchTask } from "./questions.ts"
import type { Hops } from "./world/questions.ts"

/**
 * Of the options that environments share, `history` is 4 and `thinking` is "optional" by default: as in verl-agent, which asks
 * for thoughts but takes replies without.
 */
export const searchFields = {
  ...agentFields<SearchTask>(),
  history: historyField(4),
  thinking: thinkingField("optional"),
  questions: string(
    undefined,
    "File of training questions, `.jsonl` or `.parquet`, in the layout of FlashRAG or Search-R1.",
    { defaultText: "the questions are about the embedded world" },
  ),
  testQuestions: string(undefined, "File of test questions.", { defaultText: "a tenth of `questions`" }),
  corpus: string(undefined, 'File of passages, JSON Lines `{"id", "contents"}`, to be searched in this process.', {
    defaultText: "the embedded world's",
  }),
  retriever: field<string | readonly string[] | undefined, string>(
    undefined,
    "Address of a server that speaks Search-R1's retrieval protocol (`http://127.0.0.1:8000/retrieve`), in place of a corpus; " +
      "of several, episodes take turns.",
    addressProblem,
  ),
  requestForm: oneOf(
    "single",
    ["single", "batch"],
    "What a server takes: one query (verl-agent's) or a list of them (Search-R1's).",
  ),
  retrieverTimeout: number(
    8,
    "Seconds that a server has for an answer; up to 3600. A search takes retrieverAttempts times this and the pauses between " +
      "them at most: 5 * 8 + (1 + 2 + 3 + 4) = 50 s by default. That departs from verl-agent (10 attempts of 60 s), because " +
      "the training loop ends any call of an environment after `training.rollout.environmentTimeout`, by default 60 s, and " +
      "then fails the episode. Where servers are slow, raise both.",
    { min: 0.001, max: 3600 },
  ),
  retrieverAttempts: integer(5, "How often a server is asked before it is given up; 1 to 100.", { min: 1, max: 100 }),
  retrieverDelay: number(1, "Seconds before the second attempt, twice that before the third, and so on; up to 60.", {
    min: 0,
    max: 60,
  }),
  onRetrieverFailure: oneOf(
    "report",
    ["report", "fail"],
    'What comes of a search that failed for good: its result is a sentence that says so ("report", as in verl-agent), or the ' +
      'episode fails ("fail").',
  ),
  topk: integer(3, "Passages that a search shows; 1 to 100.", { min: 1, max: 100 }),
  match: oneOf<Match, Match, string>(
    "em",
    ["em", "subem"],
    'How an answer is compared: equal to a target ("em") or containing one ("subem"), both normalised.',
  ),
  maxSteps: integer(4, "Steps after which an episode is cut off; 1 to 1000.", { min: 1, max: 1000 }),
  entities: integer(300, "Entities of the embedded world, one passage each; 60 to 10,000.", { min: 60, max: 10_000 }),
  hops: oneOf<Hops, Hops, string>(
    "mixed",
    [1, 2, "mixed"],
    'Facts that lead from a question about the embedded world to its answer: 1, 2, or "mixed".',
  ),
  worlds: integer(
    1,
    "Embedded worlds, with the same names and different facts; 1 to 1000. With more, one in six is asked about in the test " +
      "alone, and nothing can be known by heart: small models then learn to read in far fewer questions.",
    { min: 1, max: 1000 },
  ),
  worldSeed: integer(1, "Seed of the embedded world.", { min: 0 }),
  signal: abortSignal("Aborts the reading of files and the building of the index."),
}

/** Options of `search`. */
export type SearchOptions = OptionsOf<typeof searchFields>
export type SearchSettings = Resolved<typeof searchFields>

/** Options that have nothing to do without the embedded world, and without a server. */
const ofWorld = ["entities", "hops", "worlds", "worldSeed"] as const
/** Keeps the memory of many worlds to some hundred megabytes. */
const mostEntities = 100_000
const ofServers = [
  "requestForm",
  "retrieverTimeout",
  "retrieverAttempts",
  "retrieverDelay",
  "onRetrieverFailure",
] as const

/** Fills in the defaults. Throws `BAD_CONFIG` where options are unknown, wrong or have nothing to do. */
export function resolveOptions(options: SearchOptions): SearchSettings {
  const resolved = readOptions("search", options, searchFields)
  const { questions, testQuestions, corpus, retriever } = resolved
  if (corpus !== undefined && retriever !== undefined)
    fail("corpus and retriever are two places to search in; give one of them")
  if (testQuestions !== undefined && questions === undefined)
    fail("testQuestions needs questions to train on; give both files")
  if (questions !== undefined && corpus === undefined && retriever === undefined)
    fail("questions need a place to search in; give a corpus file or the address of a retriever")
  if (corpus !== undefined && questions === undefined)
    fail("a corpus needs questions about it; give a file of questions")
  if (retriever !== undefined && questions === undefined)
    fail(
      "a retriever needs questions about what it finds; give a file of questions, or leave it out to play the embedded world",
    )
  if (resolved.worlds > 1 && resolved.worlds < 6)
    fail("of several worlds one in six is for the test; give 1, or 6 or more")
  if (resolved.worlds * resolved.entities > mostEntities)
    fail(`worlds × entities may be at most ${mostEntities}; give fewer of either`)
  for (const key of questions === undefined ? [] : ofWorld)
    if (options[key] !== undefined) fail(`${key} is for the embedded world; leave it out where questions are given`)
  for (const key of retriever === undefined ? ofServers : [])
    if (options[key] !== undefined) fail(`${key} is for servers; give a retriever or leave it out`)
  return resolved
}

/** The retriever's addresses, with the customary path where they have none. */
export function addressesOf(retriever: string | readonly string[]): string[] {
  return [retriever].flat().map((address) => {
    const url = new URL(address)
    if (url.pathname === "/") url.pathname = "/retrieve"
    return url.href
  })
}

function addressProblem(value: unknown): string | undefined {
  const isAddress = (one: unknown) => {
    if (typeof one !== "string" || !URL.canParse(one)) return false
    const { protocol, username, password } = new URL(one)
    // `fetch` takes no address with a password, and messages name the address.
    return /^https?:$/.test(protocol) && username === "" && password === ""
  }
  return (Array.isArray(value) ? value.length > 0 && value.every(isAddress) : isAddress(value))
    ? undefined
    : "must be an address such as http://127.0.0.1:8000/retrieve, without user name and password, or a list of them"
}

function fail(problem: string): never {
  throw new GigpoError("BAD_CONFIG", `search: ${problem}.`)
}
