import { isDeepStrictEqual } from "node:util"
import { only } from "../options/fixed.ts"
import { isObject, readTable } from "../options/read.ts"
import type { OptionFields } from "../options/table.ts"
import { GigpoError } from "../util/errors.ts"
import { mayDiffer, type RunConfig, settledIn, shown } from "./config.ts"

/** Options of a call that works in a run. */
export interface CallOptions {
  /** Name of the call, for messages. */
  readonly call: "train" | "sft"
  /** Key of configuration files for these options. */
  readonly section: "training" | "sft"
  readonly fields: OptionFields

  /** Options with defaults filled in. */
  readonly resolved: object
  /** Keys that may differ when the run is resumed, besides those that the run allows. */
  readonly changeable?: readonly string[]
}

/** Options that the configuration of a run does not state, by dotted key. */
export type RecordedOptions = Readonly<Record<string, unknown>>

/**
 * Checks that options agree with the configuration of a run.
 *
 * @returns options that the configuration does not state, which the run records
 * @throws GigpoError `BAD_CONFIG` with each key that differs, its value in the run and the given value.
 */
export function checkStated(directory: string, config: object, requested: CallOptions): RecordedOptions {
  const { call, section, fields } = requested
  const part = (config as Readonly<Record<string, unknown>>)[section]
  const stated: Readonly<Record<string, unknown>> = {
    ...only(config, fields),
    ...(isObject(part) && only(part, fields)),
  }
  const given = plainLeaves(requested.resolved)
  const differences: string[] = []
  for (const [key, value] of Object.entries(stated)) {
    const { value: read, complaints } = readTable({ [key]: value }, fields, "code")
    if (isObject(value) && typeof value.use === "string") continue // the module of a configuration file, which is compared by digest
    const inRun = plainLeaves({ [key]: complaints.length > 0 ? value : (read as Record<string, unknown>)[key] })
    const keys = new Set([...inRun.keys(), ...[...given.keys()].filter((one) => isBelow(one, key))])
    for (const one of keys)
      if (!isDeepStrictEqual(inRun.get(one), given.get(one)))
        differences.push(`${one} is ${shown(inRun.get(one))} in the run, but ${shown(given.get(one))} in ${call}`)
  }
  if (differences.length > 0)
    throw new GigpoError(
      "BAD_CONFIG",
      `The options of ${call} differ from those of the run in ${directory}: ${differences.join("; ")}. ` +
        `Give Run.open and ${call} the same options.`,
    )
  const isStated = (key: string) => Object.keys(stated).some((one) => isBelow(key, one))
  return Object.fromEntries([...given].filter(([key, value]) => value !== undefined && !isStated(key)))
}

/**
 * Checks that options are those that a run has recorded, except for keys that may change.
 *
 * @throws GigpoError `BAD_CONFIG` with each key that differs.
 */
export function checkRecorded(
  directory: string,
  before: RunConfig,
  now: RecordedOptions,

  { fields, changeable: own = [] }: CallOptions,
  changeable: readonly string[],
): void {
  if (!isObject(before.resolved)) return // of an older version
  const old = new Map(Object.entries(before.resolved))
  const read = new Map(Object.entries(now))
  const defaults = plainLeaves(readTable({}, fields, "code").value)
  // An option that did not exist when the run was started had its default.
  const known = (key: string) => old.get(key) ?? defaults.get(key)

  // A learning rate that was not given may be set.
  const free = [...changeable, ...own, ...Object.keys(settledIn(before)).filter((key) => !old.has(key))]
  const differences = [...new Set([...old.keys(), ...read.keys()])].filter(
    (key) => !mayDiffer(key, free) && !isDeepStrictEqual(known(key), read.get(key)),
  )
  if (differences.length === 0) return
  const changed = differences.map((key) => `${key} was ${shown(known(key))} and is now ${shown(read.get(key))}`)
  throw new GigpoError(
    "BAD_CONFIG",
    `The run in ${directory} was started with other options: ${changed.join("; ")}. Restore these values to resume the run, or fork it into a new folder.`,
  )
}

/** Values by dotted path that can be compared and written. Functions and objects with functions are left out. */
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
