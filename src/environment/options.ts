import { inspect } from "node:util"
import { GigpoError } from "../errors.ts"

/** One option of an environment: its default, and what is wrong with a value that somebody gave. */
export interface Field<T> {
  readonly fallback: T
  /** What the value must be (`must be a whole number from 1 to 50`), or `undefined` where it is fine. */
  readonly problem: (value: unknown) => string | undefined
}

export type Fields<Options> = { readonly [Key in keyof Required<Options>]: Field<Options[Key]> }

/** Options with their defaults filled in; those without a default may still be missing. */
export type Resolved<Options> = { readonly [Key in keyof Required<Options>]: Exclude<Options[Key], undefined> }

/**
 * Fills in the defaults. Options come from configuration files as well as from programs, so nothing about them is believed.
 *
 * @param name the environment's, for messages
 * @throws BAD_CONFIG at the first option that is unknown or wrong
 */
export function readOptions<Options extends object>(
  name: string,
  given: Options,
  fields: Fields<Options>,
): Resolved<Options> {
  if (typeof given !== "object" || given === null || Array.isArray(given))
    throw new GigpoError("BAD_CONFIG", `${name}: options must be an object.`)
  for (const key of Object.keys(given)) {
    if (Object.hasOwn(fields, key)) continue
    throw new GigpoError("BAD_CONFIG", `${name}: ${key} is not an option; known: ${Object.keys(fields).join(", ")}.`)
  }
  const resolved: Record<string, unknown> = {}
  for (const [key, { fallback, problem }] of Object.entries<Field<unknown>>(fields)) {
    const value = (given as Record<string, unknown>)[key]
    resolved[key] = value === undefined ? fallback : value
    const wrong = value === undefined ? undefined : problem(value)
    if (wrong) throw new GigpoError("BAD_CONFIG", `${name}: ${key} ${wrong}, not ${display(value)}.`)
  }
  return resolved as Resolved<Options>
}

export function whole(fallback: number, low: number, high: number): Field<number> {
  const fits = (value: unknown) => Number.isInteger(value) && (value as number) >= low && (value as number) <= high
  return { fallback, problem: (value) => (fits(value) ? undefined : `must be a whole number from ${low} to ${high}`) }
}

export function decimal(fallback: number, low: number, high: number): Field<number> {
  const fits = (value: unknown) => typeof value === "number" && value >= low && value <= high
  return { fallback, problem: (value) => (fits(value) ? undefined : `must be a number from ${low} to ${high}`) }
}

export function flag(fallback: boolean): Field<boolean> {
  return { fallback, problem: (value) => (typeof value === "boolean" ? undefined : "must be true or false") }
}

export function oneOf<const T>(fallback: T, values: readonly T[]): Field<T> {
  const wanted = values.map((value) => JSON.stringify(value)).join(" or ")
  return { fallback, problem: (value) => (values.includes(value as T) ? undefined : `must be ${wanted}`) }
}

export function text(fallback: string): Field<string> {
  const fits = (value: unknown) => typeof value === "string" && value.trim() !== ""
  return { fallback, problem: (value) => (fits(value) ? undefined : "must be a text that is not blank") }
}

/** A function: only programs can give one, configuration files cannot. */
export function callback<Callback>(): Field<Callback | undefined> {
  return {
    fallback: undefined,
    problem: (value) => (typeof value === "function" ? undefined : "must be a function"),
  }
}

/** Only programs can give one. */
export function abortSignal(): Field<AbortSignal | undefined> {
  return {
    fallback: undefined,
    problem: (value) => (value instanceof AbortSignal ? undefined : "must be an AbortSignal"),
  }
}

/** The same option without a default: left out, it stays `undefined`. */
export function optional<T>({ problem }: Field<T>): Field<T | undefined> {
  return { fallback: undefined, problem }
}

/** A value in a message. Never throws. */
export function display(value: unknown): string {
  return written(value).slice(0, 100)
}

function written(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value)
  } catch {
    // Big integers and circles, which JSON does not know.
    return inspect(value, { depth: 1, breakLength: Number.POSITIVE_INFINITY })
  }
}
