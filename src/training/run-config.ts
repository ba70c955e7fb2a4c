import { readFile } from "node:fs/promises"
import { isDeepStrictEqual } from "node:util"
import { GigpoError } from "../errors.ts"
import { isSystemError } from "../files/io-error.ts"
import type { Scheduled } from "../options/schedule.ts"
import { version } from "../version.ts"

/**
 * A run's config.json: what was asked for, the version that was asked, which also marks the file as ours, as `frozen` the
 * digests of what the run depends on (`FrozenWeights`), and as `settled` what was chosen for it where the options left it open.
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
  "rollout.retries",
  "guards",
  "stop",
  "episodes",
  "tensorboard",
  "mlflow",
].flatMap((key) => [key, `training.${key}`])

/** Keys that a run says of itself. */
const told = ["gigpo", "frozen", "settled"]

/** JSON has no infinity, but a number too large to hold is read as one. */
export function formatRunConfig(config: object): string {
  const infinity = "\0infinity"
  const withInfinity = (_: string, value: unknown) => (value === Number.POSITIVE_INFINITY ? infinity : value)
  const text = JSON.stringify({ gigpo: version, ...config }, withInfinity, 2)
  return `${text.replaceAll(JSON.stringify(infinity), "1e999")}\n`
}

/** The config.json of a run; undefined where there is none or it is not ours. */
export async function readRunConfig(path: string): Promise<RunConfig | undefined> {
  let text: string
  try {
    text = await readFile(path, "utf8")
  } catch (cause) {
    if (isSystemError(cause) && ["ENOENT", "ENOTDIR", "EISDIR"].includes(cause.code)) return undefined
    throw cause
  }
  try {
    const config = JSON.parse(text)
    return typeof config?.gigpo === "string" ? config : undefined
  } catch {
    return undefined
  }
}

/** Learning rates that a run chose where its options left them open, by the options' dotted keys. It goes on with them. */
export type SettledRates = Readonly<Record<string, Scheduled>>

export function settledIn({ settled }: RunConfig): SettledRates {
  const found = typeof settled === "object" && settled !== null ? Object.entries(settled) : []
  return Object.fromEntries(found.filter(([, value]) => typeof value === "number"))
}

/** Refuses (`BAD_CONFIG`) to go on with another configuration than a run was started with. */
export function checkSameConfig(directory: string, old: object, now: object, mayChange: readonly string[]): void {
  const before = leaves(old)
  // Through JSON and back, as the old one went.
  const after = leaves(JSON.parse(formatRunConfig(now)))
  const fixed = (key: string) => ![...mayChange, ...told].some((free) => key === free || key.startsWith(`${free}.`))
  const changed = [...new Set([...before.keys(), ...after.keys()])].filter(
    (key) => fixed(key) && !isDeepStrictEqual(before.get(key), after.get(key)),
  )
  if (changed.length === 0) return
  const show = (value: unknown) => (value === undefined ? "not set" : JSON.stringify(value))
  const differences = changed.flatMap((key) => {
    if (!key.endsWith(".sha256")) return [`${key} was ${show(before.get(key))} and is now ${show(after.get(key))}`]
    const use = key.replace(/sha256$/, "use")
    // Of another module it is said that it is another.
    if (changed.includes(use)) return []
    return [`the module ${after.get(use)} has changed since the run began (its SHA-256 is another)`]
  })
  throw new GigpoError(
    "BAD_CONFIG",
    `The run in ${directory} was started with another configuration: ${differences.join("; ")}. ` +
      "Set these back to resume it, or start a new run in another folder.",
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
