import { resolve } from "node:path"
import { readJsonLines } from "../environment/json-lines.ts"
import { replaceFile } from "../files/atomic-file.ts"
import { checkPath } from "../options/arguments.ts"
import { isObject } from "../options/read.ts"
import { type Outcome, outcomes } from "../rollout/outcome.ts"
import { GigpoError } from "../util/errors.ts"
import { isDigest } from "./digest-text.ts"

/** What a panel is known by: SHA-256 in hexadecimal digits. */
export interface PanelDigests {
  /** The tasks, and how the environment answers. */
  readonly world: string
  /** How the agent is spoken to, and how its replies are read. */
  readonly prompt: string
  /** Of both. */
  readonly panel: string
}

/** What was evaluated, and how. The first line of the file. */
export interface EvaluationHeader {
  /** The layout of the file. */
  readonly evaluation: 1
  /** The version of this package that wrote it. */
  readonly gigpo: string
  /** With its version: "households/unseen@1". */
  readonly panel: string
  readonly digests: PanelDigests
  readonly model?: { readonly name: string; readonly sha256?: string | undefined } | undefined
  /** Tasks of the panel, and episodes of each. */
  readonly tasks: number
  readonly repeats: number
  /** The root of the policy's random numbers. */
  readonly seed: number
  /** How the episodes were sampled, and the environment's options. */
  readonly settings: Readonly<Record<string, unknown>>
}

/** One episode: a line of the file. */
export interface EvaluatedEpisode {
  /** The task's number in the panel and the episode's among its repeats, from 0. */
  readonly task: number
  readonly repeat: number
  /** Names the task in every evaluation of the panel; no two tasks of it have the same. */
  readonly key: string
  /** The kind of the task, where its environment tells of success by kinds. */
  readonly kind?: string | undefined
  readonly outcome: Outcome
  /** A metric `success` of 1. Episodes that failed or were dropped are lost. */
  readonly success: boolean
  /** Undiscounted. */
  readonly return: number
  readonly steps: number
  readonly metrics: Readonly<Record<string, number>>
  /** Replies that the environment could read, and that were cut at `maxCompletionTokens`; older files have none. */
  readonly valid?: number | undefined
  readonly cut?: number | undefined
}

/** The outcomes of every task of a panel. */
export interface PanelEvaluation {
  readonly header: EvaluationHeader
  /** `header.tasks` × `header.repeats`, a task's repeats one after the other. */
  readonly episodes: readonly EvaluatedEpisode[]
}

/**
 * Writes an evaluation as JSON Lines, whole or not at all: the header, then a line an episode.
 *
 * @throws GigpoError `BAD_ARGUMENT` where it is none, `IO`
 */
export async function writeEvaluation(path: string, evaluation: PanelEvaluation): Promise<void> {
  checkPath("writeEvaluation: path", path)
  checkEvaluation("BAD_ARGUMENT", path, evaluation)
  const { header, episodes } = evaluation
  await replaceFile(resolve(path), [header, ...episodes].map((line) => `${JSON.stringify(line)}\n`).join(""))
}

/**
 * Reads what `writeEvaluation` wrote. What it says comes from data and models: show it by `visible` alone.
 *
 * @throws GigpoError `BAD_ARGUMENT` for what is no path, `BAD_DATA` with the line where the file is no whole evaluation
 */
export async function readEvaluation(path: string): Promise<PanelEvaluation> {
  checkPath("readEvaluation: path", path)
  const lines: unknown[] = []
  for await (const { value } of readJsonLines(path)) lines.push(value)
  const [header, ...episodes] = lines
  const read = { header, episodes } as PanelEvaluation
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
  panel: isText,
  digests: (value) => isObject(value) && ["world", "prompt", "panel"].every((part) => isDigest(value[part])),
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
  cut: (value) => value === undefined || isCount(value),
}

/** Refuses what is no whole evaluation. `path` is what it is called in messages. */
export function checkEvaluation(code: Code, path: string, evaluation: PanelEvaluation): void {
  const { header, episodes } = (evaluation ?? {}) as Partial<PanelEvaluation>
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
    `${path} has ${episodes.length} episodes, not ${repeats} of each of ${tasks} tasks; evaluate the panel again.`,
  )
}

function wrongKey<T>(value: unknown, checks: Checks<T>): string | undefined {
  if (!isObject(value)) return "form"
  return Object.entries<(value: unknown) => boolean>(checks).find(([key, fits]) => !fits(value[key]))?.[0]
}

function misfit(code: Code, path: string, line: number, what: string): GigpoError {
  return new GigpoError(
    code,
    `${path}, line ${line}: its ${what} is not that of an evaluation; give a file that gigpo evaluate --panel wrote.`,
  )
}
