import type { Fixture } from "./fixture.ts"

/** One entry of a file of vectors: what a function of some other project gave for these inputs. */
export interface Vector {
  readonly params: Readonly<Record<string, unknown>>
  readonly inputs: Readonly<Record<string, unknown>>
  readonly expected: Readonly<Record<string, unknown>>
  /** The steps that its file has for several topics. */
  readonly fixture?: Fixture | undefined
}

/** What this package gives for the same inputs, under the names that are expected, or as the list alone that is: numbers, or lists of them, nested alike. */
export type Topic = (vector: Vector) => Promise<Results | readonly unknown[]> | Results | readonly unknown[]

export type Results = Readonly<Record<string, unknown>>

/** What stands among expectations and is none. */
export const notes: readonly string[] = ["note", "params"]

/** A table of numbers, one row a reply, padded to one width. */
export type Table = readonly (readonly number[])[]

/** An input or a parameter, as what its topic knows it to be. */
export function read<T>(from: Readonly<Record<string, unknown>>, name: string): T {
  return find<T>(from, [name])
}

/** A parameter or input by the first of its names that is there; what the fields inherit is sought after their own. */
export function find<T>(from: Readonly<Record<string, unknown>>, names: readonly string[], fallback?: T): T {
  for (const fields of [{ ...from }, from])
    for (const name of names) {
      const found = lookUp(fields, name)
      if (found !== undefined) return found as T
    }
  if (fallback !== undefined) return fallback
  throw new Error(`it has no ${names.join(" or ")}`)
}

/** What stands under a name, or under the one name that is spelled alike: "maxLogp" and "max_logp" are. */
export function lookUp(from: Readonly<Record<string, unknown>>, name: string): unknown {
  const known = (other: string) => (Object.hasOwn(Object.prototype, other) ? undefined : from[other])
  if (known(name) !== undefined) return known(name)
  const alike: unknown[] = []
  for (const other in from) if (plain(other) === plain(name)) alike.push(from[other])
  return alike.length === 1 ? alike[0] : undefined
}

function plain(name: string): string {
  return name.toLowerCase().replace(/[^\p{L}\d]/gu, "")
}

/** One result under several names. */
export function under(names: string, value: unknown): Results {
  return Object.fromEntries(names.split(" ").map((name) => [name, value]))
}
