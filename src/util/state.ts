/** What JSON holds. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** Numbers that are too many for JSON. */
export type StateArray = Float32Array | Float64Array | Int32Array | Uint8Array

/** All that something with a memory must keep, so that a run goes on from a checkpoint as if it had never stopped. */
export interface State {
  readonly json?: Json
  readonly arrays?: Readonly<Record<string, StateArray>>
}

/** An estimator, a loss, hooks or a source of tasks that remembers something is also this: saved with every checkpoint. */
export interface Stateful {
  state(): State
  restore(state: State): void
}

/** What in a value JSON would not give back as it is: "json.means is a Map"; undefined where there is nothing. */
export function jsonProblem(value: unknown, path: string, depth = 0): string | undefined {
  if (value === null || typeof value === "string" || typeof value === "boolean") return undefined
  if (typeof value === "number") return Number.isFinite(value) ? undefined : `${path} is ${value}`
  if (typeof value !== "object") return `${path} is ${value === undefined ? "undefined" : `a ${typeof value}`}`
  if (depth > 100) return `${path} lies too deep, or in a circle`
  const prototype = Object.getPrototypeOf(value)
  if (!Array.isArray(value) && prototype !== Object.prototype && prototype !== null)
    return `${path} is a ${prototype.constructor?.name ?? "object of a class"}`
  for (const [key, part] of Object.entries(value)) {
    if (part === undefined && !Array.isArray(value)) continue
    const problem = jsonProblem(part, Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`, depth + 1)
    if (problem) return problem
  }
  return undefined
}
