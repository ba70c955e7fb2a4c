import { GigpoError } from "../util/errors.ts"
import { notThis } from "./display.ts"
import { isObject } from "./read.ts"
import { unknownKey } from "./unknown-key.ts"

/** Keys that an object of type `T` may have. A key of `T` that is missing here is a compile error. */
export type KeysOf<T> = Readonly<Record<keyof T, true>>

/**
 * Checks that an argument is an object without unknown keys and without promises as values.
 *
 * @param name - name of the function or class that takes the argument, for messages.
 * @param known - allowed keys. Left out if a table of options checks the keys.
 * @throws GigpoError `BAD_ARGUMENT`
 */
export function checkArguments(name: string, given: unknown, known?: Readonly<Record<string, true>>): void {
  if (!isObject(given)) throw bad(`${name}: options must be an object${notThis(given)}.`)
  for (const [key, value] of Object.entries(given)) refusePromise(`${name}: ${key}`, value)
  const unknown = known && unknownKey(given, known)
  if (unknown !== undefined) throw bad(`${name}: ${unknown}.`)
}

/** Rejects a promise where a value is expected: the result of NativePolicy.open, Tokenizer.open, openEnvironment or Run.open without await. */
export function refusePromise(name: string, given: unknown): void {
  if (given instanceof Promise) throw bad(`${name} is a promise; write await before the call that makes it.`)
}

/** Checks that a value is an array, a typed array or another object with a length. */
export function checkList(name: string, given: unknown): void {
  if (!(typeof given === "object" && given !== null && "length" in given))
    throw bad(`${name} must be a list${notThis(given)}.`)
}

/** Checks that a value is a path: a string that is not empty. */
export function checkPath(name: string, given: unknown): asserts given is string {
  if (typeof given !== "string" || given === "") throw bad(`${name} must be a path${notThis(given)}.`)
}

function bad(message: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", message)
}
