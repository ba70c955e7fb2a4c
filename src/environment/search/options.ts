import { GigpoError } from "../../errors.ts"
import { type AgentOptions, agentFields, historyField, type Thinking } from "../agent.ts"
import {
  abortSignal,
  decimal,
  type Field,
  type Fields,
  oneOf,
  optional,
  type Resolved,
  readOptions,
  text,
  whole,
} from "../options.ts"
import type { Match } from "./answer.ts"
import type { SearchTask } from "./questions.ts"
import type { Hops } from "./world/questions.ts"

/**
 * Options of `search`. Of `AgentOptions`, `history` is 4 and `thinking` is "optional" by default: as in verl-agent, which asks
 * for thoughts but takes replies without.
 */
export interface SearchOptions extends AgentOptions<SearchTask> {
  /**
   * File of training questions, `.jsonl` or `.parquet`, in the layout of FlashRAG or Search-R1. Without it the questions are about
   * the embedded world.
   */
  readonly questions?: string | undefined
  /** File of test questions. By default a tenth of `questions`. */
  readonly testQuestions?: string | undefined
  /** File of passages, JSON Lines `{"id", "contents"}`, to be searched in this process. By default the embedded world's. */
  readonly corpus?: string | undefined
  /**
   * Address of a server that speaks Search-R1's retrieval protocol (`http://127.0.0.1:8000/retrieve`), in place of a corpus; of
   * several, episodes take turns.
   */
  readonly retriever?: string | readonly string[] | undefined
  /** What a server takes: one query (verl-agent's) or a list of them (Search-R1's). Default "single". */
  readonly requestForm?: "single" | "batch"
  /**
   * Seconds that a server has for an answer; up to 3600. Default 8. A search takes retrieverAttempts times this and the pauses
   * between them at most: 5 * 8 + (1 + 2 + 3 + 4) = 50 s by default. That departs from verl-agent (10 attempts of 60 s), because
   * the training loop ends any call of an environment after `training.rollout.environmentTimeout`, by default 60 s, and then
   * fails the episode. Where servers are slow, raise both.
   */
  readonly retrieverTimeout?: number
  /** How often a server is asked before it is given up; 1 to 100. Default 5. */
  readonly retrieverAttempts?: number
  /** Seconds before the second attempt, twice that before the third, and so on; up to 60. Default 1. */
  readonly retrieverDelay?: number
  /**
   * What comes of a search that failed for good: its result is a sentence that says so ("report", the default, as in verl-agent),
   * or the episode fails ("fail").
   */
  readonly onRetrieverFailure?: "report" | "fail"
  /** Passages that a search shows; 1 to 100. Default 3. */
  readonly topk?: number
  /** How an answer is compared: equal to a target ("em", the default) or containing one ("subem"), both normalised. */
  readonly match?: Match
  /** Steps after which an episode is cut off; 1 to 1000. Default 4. */
  readonly maxSteps?: number
  /** Entities of the embedded world, one passage each; 60 to 10,000. Default 300. */
  readonly entities?: number
  /** Facts that lead from a question about the embedded world to its answer: 1, 2, or "mixed", the default. */
  readonly hops?: Hops
  /**
   * Embedded worlds, with the same names and different facts; 1 to 1000. Default 1. With more, one in six is asked about in the
   * test alone, and nothing can be known by heart: small models then learn to read in far fewer questions.
   */
  readonly worlds?: number
  /** Seed of the embedded world. Default 1. */
  readonly worldSeed?: number
  /** Aborts the reading of files and the building of the index. For programs alone. */
  readonly signal?: AbortSignal | undefined
}

const fields: Fields<SearchOptions> = {
  ...agentFields<SearchTask>(),
  history: historyField(4),
  thinking: oneOf<Thinking>("optional", ["optional", "required", "off"]),
  questions: optional(text("")),
  testQuestions: optional(text("")),
  corpus: optional(text("")),
  retriever: addresses(),
  requestForm: oneOf("single", ["single", "batch"]),
  retrieverTimeout: decimal(8, 0.001, 3600),
  retrieverAttempts: whole(5, 1, 100),
  retrieverDelay: decimal(1, 0, 60),
  onRetrieverFailure: oneOf("report", ["report", "fail"]),
  topk: whole(3, 1, 100),
  match: oneOf("em", ["em", "subem"]),
  maxSteps: whole(4, 1, 1000),
  entities: whole(300, 60, 10_000),
  hops: oneOf<Hops>("mixed", [1, 2, "mixed"]),
  worlds: whole(1, 1, 1000),
  worldSeed: whole(1, 0, Number.MAX_SAFE_INTEGER),
  signal: abortSignal(),
}

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

/** Fills in the defaults. Throws `BAD_CONFIG` at the first option that is unknown, wrong or has nothing to do. */
export function resolveOptions(options: SearchOptions): Resolved<SearchOptions> {
  const resolved = readOptions("search", options, fields)
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

function addresses(): Field<string | readonly string[] | undefined> {
  const isAddress = (value: unknown) => {
    if (typeof value !== "string" || !URL.canParse(value)) return false
    const { protocol, username, password } = new URL(value)
    // `fetch` takes no address with a password, and messages name the address.
    return /^https?:$/.test(protocol) && username === "" && password === ""
  }
  const fits = (value: unknown) =>
    Array.isArray(value) ? value.length > 0 && value.every(isAddress) : isAddress(value)
  return {
    fallback: undefined,
    problem: (value) =>
      fits(value)
        ? undefined
        : "must be an address such as http://127.0.0.1:8000/retrieve, without user name and password, or a list of them",
  }
}

function fail(problem: string): never {
  throw new GigpoError("BAD_CONFIG", `search: ${problem}.`)
}
