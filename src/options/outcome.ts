import { GigpoError } from "../util/errors.ts"
import { ended } from "./display.ts"
import type { PartKind } from "./own.ts"
import { isObject } from "./read.ts"
import { unknownKey } from "./unknown-key.ts"

// What a part of somebody's own gave when it was called, or threw.

/** Refusals that begin with whose they are. */
export interface Refusals {
  bad(what: string): GigpoError
  nonFinite(what: string): GigpoError
}

export function refusalsOf({ what: kind }: PartKind, name: string): Refusals {
  const refusal = (code: "BAD_ARGUMENT" | "NON_FINITE") => (what: string) =>
    new GigpoError(code, ended(`The ${kind} ${name} gave ${what}`))
  return { bad: refusal("BAD_ARGUMENT"), nonFinite: refusal("NON_FINITE") }
}

/** What somebody's code threw, with whose code it is. What is one of our errors says enough and stays. */
export function thrownBy({ what }: PartKind, name: string, cause: unknown): GigpoError {
  if (GigpoError.is(cause)) return cause
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new GigpoError("BAD_ARGUMENT", `The ${what} ${name} threw: ${reason}`, { cause })
}

/**
 * Refuses what is no object of these keys. Keys of a class's are its own.
 *
 * @param least what is to be returned at the least: "{ advantages }"
 */
export function checkOutcome(
  given: unknown,
  { what, call, gives }: PartKind,
  keys: Readonly<Record<string, true>>,
  least: string,
  { bad }: Refusals,
): void {
  if (typeof given === "function" || (isObject(given) && typeof given[call] === "function")) {
    const instead = typeof given === "function" ? "a function" : `${/^[aeiou]/.test(what) ? "an" : "a"} ${what}`
    throw bad(
      `${instead} instead of ${gives}: call the function that makes the ${what}, or export \`options\` beside it in its module`,
    )
  }
  if (!isObject(given) || ArrayBuffer.isView(given)) throw bad(`${kindOf(given)} instead of ${gives}; return ${least}`)
  const unknown = unknownKey(given, keys)
  if (unknown !== undefined) throw bad(`a key too many: ${unknown}`)
}

/** Numbers for the report, by name. */
export function checkMetrics(metrics: unknown, { bad, nonFinite }: Refusals): void {
  if (metrics === undefined) return
  if (!isObject(metrics)) throw bad("metrics that are no object; give each number its name")
  for (const [metric, value] of Object.entries(metrics)) {
    if (!Number.isFinite(value))
      throw nonFinite(`the metric ${JSON.stringify(metric)} as ${String(value)}; give a finite number`)
  }
}

function kindOf(value: unknown): string {
  if (value === undefined || value === null) return String(value)
  return typeof value === "object" ? "an array" : `a ${typeof value}`
}
