import { GigpoError } from "../util/errors.ts"
import { display, ended, notThis } from "./display.ts"
import { nearestName } from "./nearest.ts"
import { isObject } from "./read.ts"

/** What somebody may hand in as a part of training: an object with a name and one function, or that function alone. */
export interface PartKind {
  /** "estimator" */
  readonly what: string
  /** Its function, and what that takes and gives: "estimate", "(batch, context)", "credit". */
  readonly call: string
  readonly takes: string
  readonly gives: string
  /** What may stand in its `needs`. */
  readonly needs: readonly string[]
  /** Functions that it may have besides, each of its own. */
  readonly also?: readonly string[]
}

/** What is wrong with a part, to be said after what it is called; undefined where it is one. */
export function partProblem(value: unknown, { call, takes, gives, needs, also = [] }: PartKind): string | undefined {
  if (typeof value === "function") return isClass(value) ? "is a class; give what `new` makes of it" : undefined
  if (!isObject(value)) return `must be a function ${takes} => ${gives}, or an object with name and ${call}`
  if (typeof value.name !== "string" || value.name.trim() === "")
    return "has no name; give it one, which its messages use"
  if (typeof value[call] !== "function") return `has no function ${call}${takes}`
  const wrong = [...also, "state", "restore"].find(
    (key) => value[key] !== undefined && typeof value[key] !== "function",
  )
  if (wrong !== undefined) return `has a ${wrong} that is no function`
  if ((value.state === undefined) !== (value.restore === undefined))
    return "has one of state and restore; what remembers something needs both"
  return needsProblem(value.needs, needs)
}

function needsProblem(given: unknown, known: readonly string[]): string | undefined {
  if (given === undefined) return undefined
  const quoted = known.map((need) => `"${need}"`).join(", ")
  if (!Array.isArray(given)) return `has needs that are no list; it is of ${quoted}`
  const unknown = given.find((need) => !known.includes(need))
  if (unknown === undefined) return undefined
  const near = nearestName(String(unknown), known)
  return `needs ${display(unknown)}; ${near === undefined ? `known are ${quoted}` : `did you mean "${near}"?`}`
}

/** @throws GigpoError `BAD_ARGUMENT` for what is no such part. */
export function checkPart(value: unknown, kind: PartKind): void {
  const problem = partProblem(value, kind)
  if (problem === undefined) return
  const { name } = (value ?? {}) as { readonly name?: unknown }
  const called = typeof name === "string" && name.trim() !== "" ? ` ${name}` : ""
  throw new GigpoError("BAD_ARGUMENT", ended(`The ${kind.what}${called} ${problem}${notThis(value)}`))
}

export function isClass(value: unknown): boolean {
  return typeof value === "function" && /^class\b/.test(Function.prototype.toString.call(value))
}
