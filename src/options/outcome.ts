import { GigpoError } from "../util/errors.ts"
import { ended } from "./display.ts"
import type { PartKind } from "./own.ts"
import { isObject } from "./read.ts"
import { unknownKey } from "./unknown-key.ts"

// Checks of what a custom part (an estimator, a loss) returned or threw.

/** Constructors of errors whose messages begin with the part. */
export interface Refusals {
  bad(what: string): GigpoError
  nonFinite(what: string): GigpoError
}

/** Returns constructors of errors about the result of a part. */
export function refusalsOf({ what: kind }: PartKind, name: string): Refusals {
  const refusal = (code: "BAD_ARGUMENT" | "NON_FINITE") => (what: string) =>
    new GigpoError(code, ended(`The ${kind} ${name} gave ${what}`))
  return { bad: refusal("BAD_ARGUMENT"), nonFinite: refusal("NON_FINITE") }
}

/** Wraps an exception of custom code in an error that names the part. A GigpoError is returned unchanged. */
export function thrownBy({ what }: PartKind, name: string, cause: unknown): GigpoError {
  if (GigpoError.is(cause)) return cause
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new GigpoError("BAD_ARGUMENT", `The ${what} ${name} threw: ${reason}`, { cause })
}

/**
 * Checks that a result is an object with known keys. The keys of class instances are not checked.
 *
 * @param least - required keys, for the message: "{ advantages }"
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
      `${instead} instead of ${gives}: call the function that makes the ${what}, or export \`options\` next to it in its module`,
    )
  }
  if (!isObject(given) || ArrayBuffer.isView(given)) throw bad(`${kindOf(given)} instead of ${gives}; return ${least}`)
  const unknown = unknownKey(given, keys)
  if (unknown !== undefined) throw bad(`an unexpected key: ${unknown}`)
}

/** Checks the metrics of a result: an object of finite numbers by name, or undefined. */
export function checkMetrics(metrics: unknown, { bad, nonFinite }: Refusals): void {
  if (metrics === undefined) return
  if (!isObject(metrics)) throw bad("metrics that are not an object; return numbers by name")
  for (const [metric, value] of Object.entries(metrics)) {
    if (!Number.isFinite(value))
      throw nonFinite(`the metric ${JSON.stringify(metric)} as ${String(value)}; return a finite number`)
  }
}

function kindOf(value: unknown): string {
  if (value === undefined || value === null) return String(value)
  return typeof value === "object" ? "an array" : `a ${typeof value}`
}
