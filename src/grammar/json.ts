import { compactJson } from "../json/text.ts"
import { character, except } from "./characters.ts"
import { choice, type Node, optional, repeat, rule, sequence, text } from "./node.ts"
import { number } from "./numbers.ts"

// JSON texts (RFC 8259). The only white space is an optional space after a colon or a comma, because a model could repeat unlimited white
// space endlessly.

const space = optional(text(" "))
export const comma: Node = sequence(text(","), space)
export const colon: Node = sequence(text(":"), space)

const hexadecimal: Node = { kind: "bytes", ranges: [[0x30, 0x39], [0x41, 0x46], [0x61, 0x66]] } // biome-ignore format: one line
const [d, toSeven]: Node[] = [
  { kind: "bytes", ranges: [[0x44, 0x44], [0x64, 0x64]] }, // biome-ignore format: one line
  { kind: "bytes", ranges: [[0x30, 0x37]] },
]
const notD: Node = { kind: "bytes", ranges: [[0x30, 0x39], [0x41, 0x43], [0x45, 0x46], [0x61, 0x63], [0x65, 0x66]] } // biome-ignore format: one line

/** First two digits of \uXXXX, without surrogates, which are not characters. */
const escapedUnit = choice([sequence(notD, hexadecimal), sequence(d!, toSeven!)])
const escaped = sequence(
  text("\\"),
  choice([
    { kind: "bytes", ranges: [...'"\\/bfnrt'].map((char) => [char.charCodeAt(0), char.charCodeAt(0)] as const) },
    sequence(text("u"), escapedUnit, hexadecimal, hexadecimal),
  ]),
)

/** Characters that need no escape in a string. */
export const plainRanges = except([
  [0, 0x1f],
  [0x22, 0x22],
  [0x5c, 0x5c],
])
export const plainCharacter: Node = rule(() => character(plainRanges))
export const stringCharacter: Node = rule(() => choice([plainCharacter, escaped]))

/** String of `least` to `most` characters. */
export function string(least = 0, most = Number.POSITIVE_INFINITY): Node {
  return sequence(text('"'), repeat(stringCharacter, least, most), text('"'))
}

/** Exactly the value of a JSON text, with numbers and order of keys as in the text, and strings as JSON.stringify writes them. */
export function exactly(json: string): Node {
  return text(compactJson(json))
}

/** Name as JSON.stringify writes it. */
export function constant(name: string): Node {
  return text(JSON.stringify(name))
}

/** List of `least` to `most` items. */
export function list(item: Node, least = 0, most = Number.POSITIVE_INFINITY): Node {
  if (most === 0) return text("[]")
  const items = sequence(item, repeat(sequence(comma, item), Math.max(least - 1, 0), most - 1))
  return sequence(text("["), least === 0 ? optional(items) : items, text("]"))
}

export const anyObject: Node = rule(() => {
  const members = sequence(member, repeat(sequence(comma, member), 0, Number.POSITIVE_INFINITY))
  return sequence(text("{"), optional(members), text("}"))
})
const member: Node = rule(() => sequence(string(), colon, anyValue))

export const anyValue: Node = rule(() =>
  choice([string(), number, anyObject, list(anyValue), text("true"), text("false"), text("null")]),
)
