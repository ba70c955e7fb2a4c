import { GigpoError } from "../util/errors.ts"
import { display, ended, notThis } from "./display.ts"
import { nearestName } from "./nearest.ts"
import { isObject } from "./read.ts"

/** Kind of custom part of training: an object with a name and one function, or the function alone. */
export interface PartKind {
  /** Name of the kind: "estimator". */
  readonly what: string
  /** Name of the function: "estimate". */
  readonly call: string
  /** Parameters of the function: "(batch, context)". */
  readonly takes: string
  /** Result of the function: "credit". */
  readonly gives: string
  /** Allowed entries of `needs`. */
  readonly needs: readonly string[]
  /** Names of optional functions. */
  readonly also?: readonly string[]
}

/** Predicate of a message about an invalid part ("has no name"). undefined for a valid part. */
export function partProblem(value: unknown, { call, takes, gives, needs, also = [] }: PartKind): string | undefined {
  if (typeof value === "function")
    return isClass(value) ? "is a class; give an instance of it, made with `new`" : undefined
  if (!isObject(value)) return `must be a function ${takes} => ${gives}, or an object with name and ${call}`
  if (typeof value.name !== "string" || value.name.trim() === "")
    return "has no name; give it a name, which messages use"
  if (typeof value[call] !== "function") return `has no function ${call}${takes}`
  const wrong = [...also, "state", "restore"].find(
    (key) => value[key] !== undefined && typeof value[key] !== "function",
  )
  if (wrong !== undefined) return `has a ${wrong} that is not a function`
  if ((value.state === undefined) !== (value.restore === undefined))
    return "has only one of state and restore; a part with state needs both"
  return needsProblem(value.needs, needs)
}

function needsProblem(given: unknown, known: readonly string[]): string | undefined {
  if (given === undefined) return undefined
  const quoted = known.map((need) => `"${need}"`).join(", ")
  if (!Array.isArray(given)) return `has needs that are not a list; give a list of ${quoted}`
  const unknown = given.find((need) => !known.includes(need))
  if (unknown === undefined) return undefined
  const near = nearestName(String(unknown), known)
  return `needs ${display(unknown)}; ${near === undefined ? `known: ${quoted}` : `did you mean "${near}"?`}`
}

/**
 * Checks that a value is a part of a kind.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid part.
 */
export function checkPart(value: unknown, kind: PartKind): void {
  const problem = partProblem(value, kind)
  if (problem === undefined) return
  const { name } = (value ?? {}) as { readonly name?: unknown }
  const called = typeof name === "string" && name.trim() !== "" ? ` ${name}` : ""
  throw new GigpoError("BAD_ARGUMENT", ended(`The ${kind.what}${called} ${problem}${notThis(value)}`))
}

/** Whether a value is a class. */
export function isClass(value: unknown): boolean {
  return typeof value === "function" && /^class\b/.test(Function.prototype.toString.call(value))
}
