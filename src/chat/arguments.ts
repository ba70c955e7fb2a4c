import { JsonExcess, readJsonInPieces } from "../json/pieces.ts"
import { isObject } from "../options/read.ts"
import type { Pieces } from "../util/pace.ts"
import { badField } from "./api-error.ts"
import { type FieldReader, isWellFormed } from "./fields.ts"
import { mostNesting } from "./json-limits.ts"

/** Arguments of a tool call as written: JSON of an object. An empty text means an empty object. */
export function* readArguments(read: FieldReader): Pieces<string> {
  const text = read.required("arguments")
  if (text === "") return "{}"
  const problem = yield* argumentsProblem(text)
  if (problem !== undefined) throw badField(read.name("arguments"), problem)
  return text
}

/** Why a text is not the JSON of an object, as the end of a sentence; undefined if it is. */
function* argumentsProblem(text: string): Pieces<string | undefined> {
  try {
    const value = yield* readJsonInPieces(text, () => {}, mostNesting)
    if (!isObject(value)) return `must be the JSON of an object, e.g. {"a": 1}, not of ${kindOf(value)}`
    return (yield* isWellFormed(value)) ? undefined : "contains an unpaired surrogate; send valid Unicode"
  } catch (error) {
    if (error instanceof JsonExcess) return error.message
    return 'must be the JSON of an object, e.g. {"a": 1}; the text is not valid JSON'
  }
}

function kindOf(value: unknown): string {
  if (value === null) return "null"
  return Array.isArray(value) ? "a list" : `a ${typeof value}`
}
