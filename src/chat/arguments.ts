import { JsonExcess } from "../json/pieces.ts"
import { parseJson } from "../json/text.ts"
import { isObject } from "../options/read.ts"
import { badField } from "./api-error.ts"
import { type FieldReader, isWellFormed } from "./fields.ts"
import { mostNesting } from "./json-limits.ts"

/** Arguments of a call as they are written: the JSON of an object. An empty text stands for an empty object. */
export function readArguments(read: FieldReader): string {
  const text = read.required("arguments")
  if (text === "") return "{}"
  const problem = argumentsProblem(text)
  if (problem !== undefined) throw badField(read.name("arguments"), problem)
  return text
}

/** What is wrong with arguments, to be said after what they are called; undefined where they are the JSON of an object. */
export function argumentsProblem(text: string): string | undefined {
  try {
    const value = parseJson(text, mostNesting)
    if (!isObject(value)) return `must be the JSON of an object, as {"a": 1}, not of ${kindOf(value)}`
    return isWellFormed(value) ? undefined : "has half a surrogate pair; send whole characters"
  } catch (error) {
    if (error instanceof JsonExcess) return error.message
    return 'must be the JSON of an object, as {"a": 1}; this is not JSON'
  }
}

function kindOf(value: unknown): string {
  if (value === null) return "null"
  return Array.isArray(value) ? "a list" : `a ${typeof value}`
}
