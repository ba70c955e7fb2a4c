import { abortSignal, field, integer, number, oneOf, string } from "../../options/field.ts"
import type { OptionsOf, ResolvedOf } from "../../options/table.ts"
import { GigpoError } from "../../util/errors.ts"
import { agentFields, historyField, thinkingField } from "../agent.ts"
import { readOptions } from "../options.ts"
import type { Match } from "./answer.ts"
import type { SearchTask } from "./questions.ts"
import type { Hops } from "./world/questions.ts"

/**
 * Option fields of `search`. `history` is 4 and `thinking` is "optional" by default, as in verl-agent, which asks for reasoning but accepts
 * completions without it.
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
  corpus: string(
    undefined,
    'File of passages in JSON Lines, `{"id", "contents"}` per line, searched in this process.',
    {
      defaultText: "the embedded world's",
    },
  ),
  retriever: field<string | readonly string[] | undefined, string>(
    undefined,
    "Address of a server with Search-R1's retrieval protocol (`http://127.0.0.1:8000/retrieve`), in place of a corpus, or a list of " +
      "addresses among which episodes are distributed.",
    addressProblem,
  ),
  requestForm: oneOf(
    "single",
    ["single", "batch"],
    "Format of requests to the retriever: one query (verl-agent) or a list of queries (Search-R1).",
  ),
  retrieverTimeout: number(
    8,
    "Timeout of one attempt in seconds; up to 3600. A search takes at most retrieverAttempts timeouts and the delays between them: " +
      "5 * 8 + (1 + 2 + 3 + 4) = 50 s by default. Keep this below `training.rollout.environmentTimeout` (60 s by default), after which " +
      "the episode fails; for slow servers increase both. verl-agent uses 10 attempts of 60 s.",
    { min: 0.001, max: 3600 },
  ),
  retrieverAttempts: integer(5, "Maximum number of attempts per search; 1 to 100.", { min: 1, max: 100 }),
  retrieverDelay: number(
    1,
    "Delay before the second attempt in seconds; doubled before the third, tripled before the fourth, …; up to 60.",
    {
      min: 0,
      max: 60,
    },
  ),
  onRetrieverFailure: oneOf(
    "report",
    ["report", "fail"],
    'Effect of a search whose attempts all failed. "report": the observation reports the failure, as in verl-agent. "fail": the ' +
      "episode fails.",
  ),
  topk: integer(3, "Number of passages that a search shows; 1 to 100.", { min: 1, max: 100 }),
  match: oneOf<Match, Match, string>(
    "em",
    ["em", "subem"],
    'Comparison of an answer with the targets after normalization: equal to one ("em") or containing one ("subem").',
  ),
  maxSteps: integer(4, "Maximum number of steps of an episode; 1 to 1000.", { min: 1, max: 1000 }),
  entities: integer(300, "Number of entities of the embedded world, one passage each; 60 to 10,000.", {
    min: 60,
    max: 10_000,
  }),
  hops: oneOf<Hops, Hops, string>(
    "mixed",
    [1, 2, "mixed"],
    'Number of facts that lead from a question about the embedded world to its answer: 1, 2, or "mixed".',
  ),
  worlds: integer(
    1,
    "Number of embedded worlds with the same names and different facts: 1, or 6 to 1000. With several worlds, one in six is used only " +
      "in the test, and answers cannot be memorized: small models then learn to use the passages with far fewer questions.",
    { min: 1, max: 1000 },
  ),
  worldSeed: integer(1, "Seed of the embedded world.", { min: 0 }),
  signal: abortSignal("Aborts the reading of files and the building of the index."),
}

/** Options of `search`. */
export type SearchOptions = OptionsOf<typeof searchFields>
export type SearchSettings = ResolvedOf<typeof searchFields>

/** Options that apply only to the embedded world. */
const ofWorld = ["entities", "hops", "worlds", "worldSeed"] as const
/** Limit of worlds × entities, which keeps the memory of many worlds below some hundred megabytes. */
const mostEntities = 100_000
/** Options that apply only to a retrieval server. */
const ofServers = [
  "requestForm",
  "retrieverTimeout",
  "retrieverAttempts",
  "retrieverDelay",
  "onRetrieverFailure",
] as const

/** Options with defaults. Throws `BAD_CONFIG` for options that are unknown, invalid or without effect. */
export function resolveOptions(options: SearchOptions): SearchSettings {
  const resolved = readOptions("search", options, searchFields)
  const { questions, testQuestions, corpus, retriever } = resolved
  if (corpus !== undefined && retriever !== undefined) fail("corpus and retriever exclude each other; give one of them")
  if (testQuestions !== undefined && questions === undefined)
    fail("testQuestions needs questions to train on; give both files")
  if (questions !== undefined && corpus === undefined && retriever === undefined)
    fail("questions need corpus or retriever; give a corpus file or the address of a retriever")
  if (corpus !== undefined && questions === undefined)
    fail("a corpus needs questions about it; give a file of questions")
  if (retriever !== undefined && questions === undefined)
    fail("retriever needs questions; give a file of questions, or omit retriever to use the embedded world")
  if (resolved.worlds > 1 && resolved.worlds < 6)
    fail("worlds must be 1, or at least 6, because one in six is used for the test")
  if (resolved.worlds * resolved.entities > mostEntities)
    fail(`worlds × entities may be at most ${mostEntities}; decrease one of them`)
  for (const key of questions === undefined ? [] : ofWorld)
    if (options[key] !== undefined) fail(`${key} is for the embedded world; omit it if questions are given`)
  for (const key of retriever === undefined ? ofServers : [])
    if (options[key] !== undefined) fail(`${key} is for servers; give a retriever or omit it`)
  return resolved
}

/** Addresses of the retriever, with the path `/retrieve` if an address has none. */
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
    // `fetch` rejects an address with a password, and messages contain the address.
    return /^https?:$/.test(protocol) && username === "" && password === ""
  }
  return (Array.isArray(value) ? value.length > 0 && value.every(isAddress) : isAddress(value))
    ? undefined
    : "must be an address such as http://127.0.0.1:8000/retrieve, without user name and password, or a list of them"
}

function fail(problem: string): never {
  throw new GigpoError("BAD_CONFIG", `search: ${problem}.`)
}
