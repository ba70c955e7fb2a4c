import { Dict } from "./dict.ts"
import { fail, unsupported } from "./errors.ts"
import type { Value } from "./values.ts"

const token = /[[\]{},:]|"[^"\\]*(?:\\.[^"\\]*)*"|[^\s[\]{},:"]+/g
const maximumDepth = 500
/** Python's limit of an integer's digits, and a sign. */
const mostDigits = 4301

/** json.loads of text that is JSON: exact integers, floats, keys in their order. */
export function parseJson(source: string): Value {
  const tokens = source.match(token) ?? []
  let at = 0
  const read = (depth: number): Value => {
    if (depth > maximumDepth) unsupported(`JSON nested more than ${maximumDepth} deep`)
    const first = tokens[at++] as string
    if (first === "[") return readList(depth)
    if (first === "{") return readDict(depth)
    if (first.startsWith('"')) return JSON.parse(first) as string
    if (first === "null") return null
    if (first === "true" || first === "false") return first === "true"
    if (/[.eE]/.test(first)) return Number(first)
    if (first.length > mostDigits) fail("ValueError", "Exceeds the limit (4300 digits) for integer string conversion")
    return BigInt(first)
  }
  const readList = (depth: number): Value => {
    const items: Value[] = []
    while (tokens[at] !== "]") {
      if (tokens[at] === ",") at++
      items.push(read(depth + 1))
    }
    at++
    return items
  }
  const readDict = (depth: number): Value => {
    const dict = new Dict()
    while (tokens[at] !== "}") {
      if (tokens[at] === ",") at++
      const key = JSON.parse(tokens[at] as string) as string
      at += 2
      dict.set(key, read(depth + 1))
    }
    at++
    return dict
  }
  return read(0)
}
