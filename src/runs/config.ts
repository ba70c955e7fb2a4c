import { isDeepStrictEqual } from "node:util"
import { readIfThere } from "../files/regular-file.ts"
import { isObject } from "../options/read.ts"
import type { Scheduled } from "../options/schedule.ts"
import { GigpoError } from "../util/errors.ts"
import { version } from "../util/version.ts"

/**
 * A run's config.json: what was asked for, the version that was asked, which also marks the file as ours, as `frozen` the
 * digests of what the run depends on (`FrozenWeights`), as `settled` what was chosen for it where the options left it open, as
 * `resolved` the options, by dotted key, that training was given beside those asked for, and as `promptDate` the date that its
 * prompts show.
 */
export type RunConfig = Readonly<Record<string, unknown>> & { readonly gigpo: string }

/** Keys that change how long a run goes on, what is kept of it, how fast it is and what it puts up with, but not what it computes where all is well. */
export const changeableKeys: readonly string[] = [
  "iterations",
  "checkpointEvery",
  "keepCheckpoints",
  "evaluation.every",
  "rollout.concurrency",
  "rollout.environmentTimeout",
  "rollout.turnTimeout",
  "rollout.episodeTimeout",
  "rollout.groupTimeout",
  "rollout.maxRetries",
  "guards",
  "stop",
  "episodes",
  "tensorboard",
  "mlflow",
].flatMap((key) => [key, `training.${key}`])

/** Keys that a run says of itself. */
const told = ["gigpo", "frozen", "settled", "resolved", "promptDate"]

/** Whether a key is one that a resumed run may change, or below one. */
export function mayDiffer(key: string, mayChange: readonly string[]): boolean {
  return mayChange.some((free) => key === free || key.startsWith(`${free}.`))
}

/** A value in a message. */
export function shown(value: unknown): string {
  return value === undefined ? "not set" : (JSON.stringify(value) ?? String(value))
}

/** JSON has no infinity, but a number too large to hold is read as one. */
export function formatRunConfig(config: object): string {
  const infinity = "\0infinity"
  const withInfinity = (_: string, value: unknown) => (value === Number.POSITIVE_INFINITY ? infinity : value)
  const text = JSON.stringify({ gigpo: version, ...config }, withInfinity, 2)
  return `${text.replaceAll(JSON.stringify(infinity), "1e999")}\n`
}

// Limits far above what a configuration has. Whatever walks one may take a path of all keys above each value.

/** Bytes of the file. */
const largest = 16 * 2 ** 20
/** Levels of groups and lists, keys of all groups, and characters of a key. */
const [deepest, mostKeys, longestKey] = [50, 20_000, 300]

/**
 * The config.json of a run; undefined where there is none or it is not ours.
 *
 * @throws GigpoError `RUN_CORRUPT` where it is ours and beyond all limits, `UNSAFE_PATH` for a link, `IO`
 */
export async function readRunConfig(path: string): Promise<RunConfig | undefined> {
  const text = await readIfThere(path, largest).catch(corrupt)
  if (text === undefined) return undefined
  let config: unknown
  try {
    config = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!isObject(config) || typeof config.gigpo !== "string") return undefined
  if (keysOf(config, deepest) <= mostKeys) return config as RunConfig
  throw new GigpoError(
    "RUN_CORRUPT",
    `${path} is no configuration that gigpo wrote: it is nested more than ${deepest} deep, has more than ${mostKeys} keys, or one of ` +
      `more than ${longestKey} characters. Put back a whole copy of that file.`,
  )
}

/** A file that is too large is damage of the run. */
function corrupt(error: unknown): never {
  if (!GigpoError.is(error) || error.code !== "BAD_DATA") throw error
  throw new GigpoError("RUN_CORRUPT", error.message, { cause: error })
}

/** How many keys there are in all groups; infinitely many beyond a limit. */
function keysOf(value: unknown, levels: number): number {
  if (typeof value !== "object" || value === null) return 0
  if (levels === 0) return Number.POSITIVE_INFINITY
  const keys = Array.isArray(value) ? [] : Object.keys(value)
  if (keys.some((key) => key.length > longestKey)) return Number.POSITIVE_INFINITY
  return Object.values(value).reduce((sum: number, inner) => sum + keysOf(inner, levels - 1), keys.length)
}

/** Learning rates that a run chose where its options left them open, by the options' dotted keys. It goes on with them. */
export type ResolvedLearningRates = Readonly<Record<string, Scheduled>>

export function settledIn({ settled }: RunConfig): ResolvedLearningRates {
  const found = typeof settled === "object" && settled !== null ? Object.entries(settled) : []
  return Object.fromEntries(found.filter(([, value]) => typeof value === "number"))
}

/** What another configuration is than the one that a run was started with, a clause for each key. */
export function configDifferences(old: object, now: object, mayChange: readonly string[]): readonly string[] {
  const before = leaves(old)
  // Through JSON and back, as the old one went.
  const after = leaves(JSON.parse(formatRunConfig(now)))
  const fixed = (key: string) => !mayDiffer(key, [...mayChange, ...told])
  const changed = [...new Set([...before.keys(), ...after.keys()])].filter(
    (key) => fixed(key) && !isDeepStrictEqual(before.get(key), after.get(key)),
  )

  return changed.flatMap((key) => {
    if (!key.endsWith(".sha256")) return [`${key} was ${shown(before.get(key))} and is now ${shown(after.get(key))}`]
    const use = key.replace(/sha256$/, "use")
    // Of another module it is said that it is another.
    if (changed.includes(use)) return []
    return [`the module ${after.get(use)} has changed since the run began (its SHA-256 is another)`]
  })
}

/** Refuses (`BAD_CONFIG`) to go on with another configuration than a run was started with. */
export function checkSameConfig(directory: string, old: object, now: object, mayChange: readonly string[]): void {
  const differences = configDifferences(old, now, mayChange)
  if (differences.length === 0) return
  throw new GigpoError(
    "BAD_CONFIG",
    `The run in ${directory} was started with another configuration: ${differences.join("; ")}. ` +
      "Set these back to resume it, or start a new run in another folder: --fork begins it with the state of this one.",
  )
}

/** Every value that is no object, by its dotted path. */
export function leaves(value: object, prefix = ""): Map<string, unknown> {
  const found = new Map<string, unknown>()
  for (const [key, inner] of Object.entries(value)) {
    const path = `${prefix}${key}`
    const isObject = typeof inner === "object" && inner !== null && !Array.isArray(inner)
    if (isObject) for (const [deep, leaf] of leaves(inner, `${path}.`)) found.set(deep, leaf)
    else found.set(path, inner)
  }
  return found
}
