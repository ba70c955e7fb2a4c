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
  if (from[name] === undefined) throw new Error(`it has no ${name}`)
  return from[name] as T
}
