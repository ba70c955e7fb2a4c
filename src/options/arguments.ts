import { GigpoError } from "../util/errors.ts"
import { notThis } from "./display.ts"
import { isObject } from "./read.ts"
import { unknownKey } from "./unknown-key.ts"

/** Every key that an object of this type may have: a new one that is forgotten does not compile. */
export type KeysOf<T> = Readonly<Record<keyof T, true>>

/**
 * Refuses what is handed in where an object is asked for and is none, or has keys that nobody reads.
 *
 * @param name - whose argument it is, for messages.
 * @param known - its keys; left out where a table of options refuses the others.
 * @throws GigpoError `BAD_ARGUMENT`
 */
export function checkArguments(name: string, given: unknown, known?: Readonly<Record<string, true>>): void {
  if (!isObject(given)) throw bad(`${name}: options must be an object${notThis(given)}.`)
  for (const [key, value] of Object.entries(given)) refusePromise(`${name}: ${key}`, value)
  const unknown = known && unknownKey(given, known)
  if (unknown !== undefined) throw bad(`${name}: ${unknown}.`)
}

/** Refuses a promise of a factory that was not awaited: NativePolicy.open, Tokenizer.open, openEnvironment, Run.open. */
export function refusePromise(name: string, given: unknown): void {
  if (given instanceof Promise) throw bad(`${name} is a promise; write await before the call that makes it.`)
}

/** Refuses what is no list, of whatever kind. */
export function checkList(name: string, given: unknown): void {
  if (!(typeof given === "object" && given !== null && "length" in given))
    throw bad(`${name} must be a list${notThis(given)}.`)
}

/** Refuses what is no path. */
export function checkPath(name: string, given: unknown): asserts given is string {
  if (typeof given !== "string" || given === "") throw bad(`${name} must be a path${notThis(given)}.`)
}

function bad(message: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", message)
}
