import { isObject } from "../files.ts"
import { show, Unsupported } from "./fields.ts"
import { Pattern } from "./pattern.ts"

/** Reads a pattern of tokenizer.json, `{ String: … }` or `{ Regex: … }`. */
export function readPattern(json: unknown, where: string): Pattern {
  if (isObject(json) && Object.keys(json).length === 1) {
    if (typeof json.String === "string") return Pattern.literal(json.String)
    if (typeof json.Regex === "string") return Pattern.expression(json.Regex)
  }
  throw new Unsupported(`has ${show(json)} for the pattern of ${where}`)
}
