import { jsonProblem } from "../../chat/json-limits.ts"
import { isObject } from "../../options/read.ts"

// An episodes file is checked before it is used: its content is not trusted.

export type Check = (value: unknown) => boolean

/** Whether a value is a count or index, below 2^31. */
export const isCount: Check = (value) =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) < 2 ** 31
export const isNumber: Check = (value) => typeof value === "number" && Number.isFinite(value)
export const isText: Check = (value) => typeof value === "string"

export function below(limit: number): Check {
  return (value) => isCount(value) && (value as number) < limit
}

export function listOf(check: Check, length?: number): Check {
  return (value) => Array.isArray(value) && (length === undefined || value.length === length) && value.every(check)
}

export function optional(check: Check): Check {
  return (value) => value === undefined || check(value)
}

export const isNumbers: Check = (value) => isObject(value) && Object.values(value).every(isNumber)

/** Checks the members of an object and drops others. Throws for an invalid member. */
export function checked<T extends object>(value: unknown, checks: { readonly [Key in keyof Required<T>]: Check }): T {
  if (!isObject(value)) throw new Error("it has a value instead of an object")
  const entries = Object.entries<Check>(checks).map(([key, check]) => {
    if (!check(value[key])) throw new Error(`its ${key} is wrong`)
    return [key, value[key]]
  })
  return Object.fromEntries(entries.filter(([, own]) => own !== undefined))
}

/** Parses JSON with limits, so that the value takes little more memory than the text. */
export function parseLimited(json: string): unknown {
  const problem = jsonProblem(json)
  if (problem !== undefined) throw new Error(`its JSON ${problem}`)
  return JSON.parse(json)
}
