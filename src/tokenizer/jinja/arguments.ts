import { numeric } from "./compare.ts"
import { fail } from "./errors.ts"
import { type Arguments, typeName, Undefined, type Value } from "./values.ts"

/** Function of Python values. Omitted arguments are undefined. */
export type Implementation = (...values: (Value | undefined)[]) => Value

/** A callable with named parameters. */
export type Callable = (args: Arguments) => Value

/**
 * Makes a callable from a list of parameters such as "text width? first?". "?" marks an optional parameter, "/" a positional-only one.
 */
export function signature(name: string, parameters: string, implementation: unknown): Callable {
  const all = parameters === "" ? [] : parameters.split(" ")
  const names = all.map((parameter) => parameter.replace("?", ""))
  const required = all.filter((parameter) => !parameter.includes("?")).length
  return ({ positional, named }) => {
    if (positional.length > names.length)
      fail("TypeError", `${name}() takes ${names.length} positional arguments but ${positional.length} were given`)
    const values: (Value | undefined)[] = [...positional]
    for (const [key, value] of named) {
      const at = names.indexOf(key)
      if (at < 0) fail("TypeError", `${name}() got an unexpected keyword argument '${key}'`)
      if (values[at] !== undefined) fail("TypeError", `${name}() got multiple values for argument '${key}'`)
      values[at] = value
    }
    for (let at = 0; at < required; at++)
      if (values[at] === undefined) fail("TypeError", `${name}() missing required argument: '${names[at]}'`)
    return (implementation as Implementation)(...values)
  }
}

/** Callables by name. */
export type CallableTable = ReadonlyMap<string, Callable>

/** A table of `"name(parameters)": implementation`. */
export function table(entries: Readonly<Record<string, unknown>>): CallableTable {
  return new Map(
    Object.entries(entries).map(([key, implementation]) => {
      const [name, parameters] = key.slice(0, -1).split("(") as [string, string]
      return [name, signature(name, parameters, implementation)]
    }),
  )
}

export const noArguments: Arguments = { positional: [], named: new Map() }

/** An argument that must be a str. */
export function text(value: Value): string {
  if (typeof value === "string") return value
  if (value instanceof Undefined) return fail("TypeError", "expected str, got Undefined")
  return fail("TypeError", `expected str, got ${typeName(value)}`)
}

/** Argument that must be an int (or bool), as a JavaScript number; clamped to ±2^48. */
export function index(value: Value): number {
  const number = numeric(value)
  if (typeof number !== "bigint")
    return fail("TypeError", `'${typeName(value)}' object cannot be interpreted as an integer`)
  const far = 2n ** 48n
  return Number(number > far ? far : number < -far ? -far : number)
}
