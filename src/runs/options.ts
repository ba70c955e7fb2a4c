import { isDeepStrictEqual } from "node:util"
import { only } from "../options/fixed.ts"
import { isObject, readTable } from "../options/read.ts"
import type { Fields } from "../options/table.ts"
import { GigpoError } from "../util/errors.ts"
import { mayDiffer, type RunConfig, settledIn, shown } from "./config.ts"

/** Options of a call that works in a run. */
export interface AskedOptions {
  /** The call, for messages. */
  readonly call: "train" | "sft"
  /** The key of a configuration file that holds such options. */
  readonly section: "training" | "sft"
  readonly fields: Fields

  /** With every default filled in. */
  readonly resolved: object
  /** Keys that may differ when the run is resumed, besides those that the run allows. */
  readonly mayChange?: readonly string[]
}

/** The options that a run's configuration does not state, by dotted key. */
export type RecordedOptions = Readonly<Record<string, unknown>>

/**
 * Refuses options that a run's configuration states otherwise.
 *
 * @returns those that it does not state, for the run to keep
 * @throws GigpoError `BAD_CONFIG` with every key, its value in the run and the one given
 */
export function checkStated(directory: string, config: object, asked: AskedOptions): RecordedOptions {
  const { call, section, fields } = asked
  const part = (config as Readonly<Record<string, unknown>>)[section]
  const stated: Readonly<Record<string, unknown>> = {
    ...only(config, fields),
    ...(isObject(part) && only(part, fields)),
  }
  const given = plainLeaves(asked.resolved)
  const differences: string[] = []
  for (const [key, value] of Object.entries(stated)) {
    const { value: read, complaints } = readTable({ [key]: value }, fields, "code")
    if (isObject(value) && typeof value.use === "string") continue // a file's module, which its digest tells apart
    const inRun = plainLeaves({ [key]: complaints.length > 0 ? value : (read as Record<string, unknown>)[key] })
    const keys = new Set([...inRun.keys(), ...[...given.keys()].filter((one) => isBelow(one, key))])
    for (const one of keys)
      if (!isDeepStrictEqual(inRun.get(one), given.get(one)))
        differences.push(
          `${one} is ${shown(inRun.get(one))} in the run, and ${call} was given ${shown(given.get(one))}`,
        )
  }
  if (differences.length > 0)
    throw new GigpoError(
      "BAD_CONFIG",
      `The run in ${directory} was opened with other options than ${call} was given: ${differences.join("; ")}. ` +
        `Give Run.open and ${call} the same options.`,
    )
  const isStated = (key: string) => Object.keys(stated).some((one) => isBelow(key, one))
  return Object.fromEntries([...given].filter(([key, value]) => value !== undefined && !isStated(key)))
}

/**
 * Refuses to go on with other options than a run has recorded.
 *
 * @throws GigpoError `BAD_CONFIG`
 */
export function checkRecorded(
  directory: string,
  before: RunConfig,
  now: RecordedOptions,

  { fields, mayChange: own = [] }: AskedOptions,
  mayChange: readonly string[],
): void {
  if (!isObject(before.resolved)) return // of an older version
  const old = new Map(Object.entries(before.resolved))
  const read = new Map(Object.entries(now))
  const defaults = plainLeaves(readTable({}, fields, "code").value)
  // An option that is younger than the run had its default.
  const known = (key: string) => old.get(key) ?? defaults.get(key)

  // A rate that was left open may be set.
  const free = [...mayChange, ...own, ...Object.keys(settledIn(before)).filter((key) => !old.has(key))]
  const differences = [...new Set([...old.keys(), ...read.keys()])].filter(
    (key) => !mayDiffer(key, free) && !isDeepStrictEqual(known(key), read.get(key)),
  )
  if (differences.length === 0) return
  const told = differences.map((key) => `${key} was ${shown(known(key))} and is now ${shown(read.get(key))}`)
  throw new GigpoError(
    "BAD_CONFIG",
    `The run in ${directory} was started with other options: ${told.join("; ")}. Set these back to resume it, or fork it into a new folder.`,
  )
}

/** Values that can be compared and written: functions, and objects that have any, are parts of the program. */
function plainLeaves(value: object): Map<string, unknown> {
  const found = new Map<string, unknown>()
  for (const [key, inner] of Object.entries(value)) {
    if (isPart(inner)) continue
    for (const [deep, leaf] of isObject(inner) ? plainLeaves(inner) : [["", inner] as const])
      found.set(deep === "" ? key : `${key}.${deep}`, leaf)
  }
  return found
}

function isPart(value: unknown): boolean {
  if (typeof value === "function") return true
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false
  const prototype = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return true
  return Object.values(value).some((inner) => typeof inner === "function")
}

function isBelow(key: string, above: string): boolean {
  return key === above || key.startsWith(`${above}.`)
}
