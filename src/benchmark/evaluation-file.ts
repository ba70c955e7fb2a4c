import { resolve } from "node:path"
import { readJsonLines } from "../environment/json-lines.ts"
import { replaceFile } from "../files/atomic-file.ts"
import { checkPath } from "../options/arguments.ts"
import { isObject } from "../options/read.ts"
import { renamedKey } from "../options/renamed.ts"
import { type Outcome, outcomes } from "../rollout/outcome.ts"
import { GigpoError } from "../util/errors.ts"
import { isDigest } from "./digest-text.ts"

/** Digests of a benchmark: SHA-256 in hexadecimal digits. */
export interface BenchmarkDigests {
  /** Digest of the tasks and the responses of the environment. */
  readonly environment: string
  /** Digest of the prompts and the parsing of completions. */
  readonly prompt: string
  /** Digest of both. */
  readonly benchmark: string
}

/** Header of an evaluation: benchmark, model and settings. The first line of the file. */
export interface EvaluationHeader {
  /** Version of the file format. */
  readonly evaluation: 1
  /** Version of gigpo that wrote the file. */
  readonly gigpo: string
  /** Name of the benchmark with its version: "households/unseen@1". */
  readonly benchmark: string
  /** Digests of the benchmark. */
  readonly digests: BenchmarkDigests
  /** The model: its `name`, and the SHA-256 of its weights up to 8 GB as `sha256`. */
  readonly model?: { readonly name: string; readonly sha256?: string | undefined } | undefined
  /** Number of tasks. */
  readonly tasks: number
  /** Episodes per task. */
  readonly repeats: number
  /** Seed of the policy's random numbers. */
  readonly seed: number
  /** Sampling settings and options of the environment. */
  readonly settings: Readonly<Record<string, unknown>>
}

/** Evaluated episode: a line of the file. */
export interface EvaluatedEpisode {
  /** Index of the task in the benchmark, from 0. */
  readonly task: number
  /** Index of the episode among the repeats of the task, from 0. */
  readonly repeat: number
  /** Key of the task, unique in the benchmark and equal in all evaluations of the benchmark. */
  readonly key: string
  /** Kind of the task, where the environment reports success by kind. */
  readonly kind?: string | undefined
  /** End of the episode. */
  readonly outcome: Outcome
  /** Whether the metric `success` is 1. Failed and excluded episodes count as unsuccessful. */
  readonly success: boolean
  /** Undiscounted return. */
  readonly return: number
  /** Number of steps. */
  readonly steps: number
  /** Metrics of the last step by name. */
  readonly metrics: Readonly<Record<string, number>>
  /** Number of completions with a valid action. Absent in older files. */
  readonly valid?: number | undefined
  /** Number of completions that were truncated at `maxCompletionTokens`. Absent in older files. */
  readonly truncated?: number | undefined
}

/** Evaluation of a benchmark: header and all episodes. */
export interface BenchmarkEvaluation {
  /** Header of the file: benchmark, model and settings. */
  readonly header: EvaluationHeader
  /** Episodes, `header.tasks` × `header.repeats`. The repeats of a task follow each other. */
  readonly episodes: readonly EvaluatedEpisode[]
}

/**
 * Writes an evaluation as JSON Lines, atomically: the header, then a line per episode.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid evaluation, `IO` for an error of the system.
 */
export async function writeEvaluation(path: string, evaluation: BenchmarkEvaluation): Promise<void> {
  checkPath("writeEvaluation: path", path)
  checkEvaluation("BAD_ARGUMENT", path, evaluation)
  const { header, episodes } = evaluation
  await replaceFile(resolve(path), [header, ...episodes].map((line) => `${JSON.stringify(line)}\n`).join(""))
}

/**
 * Reads an evaluation that `writeEvaluation` wrote. Texts in the file come from data and models, so control characters must be escaped for display.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid path, `BAD_DATA` with the line for an invalid or incomplete file.
 */
export async function readEvaluation(path: string): Promise<BenchmarkEvaluation> {
  checkPath("readEvaluation: path", path)
  const lines: unknown[] = []
  for await (const { value } of readJsonLines(path)) lines.push(value)
  const [header, ...episodes] = lines
  const read = { header, episodes } as BenchmarkEvaluation
  checkEvaluation("BAD_DATA", path, read)
  return read
}

type Code = "BAD_ARGUMENT" | "BAD_DATA"
type Checks<T> = { readonly [Key in keyof Required<T>]: (value: unknown) => boolean }

const isText = (value: unknown) => typeof value === "string" && value !== ""
const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0

const headerChecks: Checks<EvaluationHeader> = {
  evaluation: (value) => value === 1,
  gigpo: isText,
  benchmark: isText,
  digests: (value) => isObject(value) && ["environment", "prompt", "benchmark"].every((part) => isDigest(value[part])),
  model: (value) =>
    value === undefined ||
    (isObject(value) && isText(value.name) && (value.sha256 === undefined || isDigest(value.sha256))),
  tasks: (value) => isCount(value) && value !== 0,
  repeats: (value) => isCount(value) && value !== 0,
  seed: isCount,
  settings: isObject,
}

const episodeChecks: Checks<EvaluatedEpisode> = {
  task: isCount,
  repeat: isCount,
  key: isText,
  kind: (value) => value === undefined || isText(value),
  outcome: (value) => outcomes.includes(value as Outcome),
  success: (value) => typeof value === "boolean",
  return: Number.isFinite,
  steps: isCount,
  metrics: (value) => isObject(value) && Object.values(value).every(Number.isFinite),
  valid: (value) => value === undefined || isCount(value),
  truncated: (value) => value === undefined || isCount(value),
}

/** Checks that an evaluation is valid and complete. `path` is its name in messages. */
export function checkEvaluation(code: Code, path: string, evaluation: BenchmarkEvaluation): void {
  const { header, episodes } = (evaluation ?? {}) as Partial<BenchmarkEvaluation>
  const old = renamedKey(header)
  if (old !== undefined) throw new GigpoError(code, `${path}, line 1: ${old}; rename the key in the file.`)
  const wrong = wrongKey(header, headerChecks)
  if (wrong || !Array.isArray(episodes)) throw misfit(code, path, 1, wrong ?? "episodes")
  const { tasks, repeats } = header as EvaluationHeader
  const keys = new Map<string, number>()
  for (const [index, episode] of episodes.entries()) {
    const wrong = wrongKey(episode, episodeChecks)
    if (wrong) throw misfit(code, path, index + 2, wrong)
    const { task, repeat, key } = episode as EvaluatedEpisode
    if (task * repeats + repeat !== index || repeat >= repeats) throw misfit(code, path, index + 2, "task and repeat")
    if (keys.has(key) !== repeat > 0 || (keys.get(key) ?? task) !== task) throw misfit(code, path, index + 2, "key")
    keys.set(key, task)
  }
  if (episodes.length === tasks * repeats) return
  throw new GigpoError(
    code,
    `${path} has ${episodes.length} episodes, not ${repeats} of each of ${tasks} tasks; evaluate the benchmark again.`,
  )
}

function wrongKey<T>(value: unknown, checks: Checks<T>): string | undefined {
  if (!isObject(value)) return "form"
  return Object.entries<(value: unknown) => boolean>(checks).find(([key, fits]) => !fits(value[key]))?.[0]
}

function misfit(code: Code, path: string, line: number, what: string): GigpoError {
  return new GigpoError(
    code,
    `${path}, line ${line}: its ${what} is not valid in an evaluation; pass a file that gigpo evaluate --benchmark wrote.`,
  )
}
