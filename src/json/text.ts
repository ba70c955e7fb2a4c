import { randomBytes } from "node:crypto"
import { atOnce, type Pieces } from "../util/pace.ts"
import { type Nesting, readJsonInPieces } from "./pieces.ts"
import { replacedInPieces } from "./replaced.ts"

// JSON from elsewhere that is written again: JavaScript rounds integers beyond 2^53, writes 20.0 as 20 and sorts keys
// such as "10". Values are those of JSON.parse; the source text of each object and list is kept with it, and written in
// its place.

class Given {
  constructor(value: object) {
    // biome-ignore lint/correctness/noConstructorReturn: the private field is added to the value itself
    return value
  }
}

/**
 * Source text of an object or list, in a private field. A WeakMap with 250,000 entries blocks the process for 20 ms
 * when it grows.
 */
class Texts extends Given {
  #text: string

  constructor(value: object, text: string) {
    super(value)
    this.#text = text
  }

  static of(value: object): string | undefined {
    return #text in value ? value.#text : undefined
  }
}

/**
 * Parses a JSON text like `JSON.parse`. `stringify` and `writeJson` write the value, and every object and list in it,
 * as in the source. The value must not be changed.
 *
 * @throws SyntaxError, JsonExcess
 */
export function parseJson(text: string, most?: Nesting): unknown {
  return atOnce(parseJsonInPieces(text, most))
}

/**
 * `parseJson` in short pieces of work.
 *
 * @throws SyntaxError, JsonExcess
 */
export function parseJsonInPieces(text: string, most?: Nesting): Pieces<unknown> {
  return readJsonInPieces(text, (value, own) => void new Texts(value, own), most)
}

/** Source text of an object or list from `parseJson`; undefined for any other value. */
export function textOf(value: object): string | undefined {
  return Texts.of(value)
}

/** `JSON.stringify`, but values of `parseJson` are written as in their source. */
export function stringify(value: unknown): string {
  const whole = typeof value === "object" && value !== null ? Texts.of(value) : undefined
  if (whole !== undefined) return whole
  const kept: string[] = []
  const json = JSON.stringify(value, (_, part: unknown) => {
    const text = typeof part === "object" && part !== null ? Texts.of(part) : undefined
    return text === undefined ? part : `${placeholder}${kept.push(text) - 1}`
  })
  return kept.length === 0 ? json : json.replace(placeholders, (_, at) => kept[at]!)
}

/** Placeholder of a text in the output of `JSON.stringify`; unguessable, so that no other text can contain it. */
const placeholder = `\u{e000}${randomBytes(12).toString("hex")}:`
const placeholders = new RegExp(`"${placeholder}(\\d+)"`, "g")

/** Characters between two possible pauses. */
const charactersPerPiece = 8192

/** Members of an object's JSON text, or items of a list by index, each as written and in order. */
export function memberTexts(text: string): ReadonlyMap<string, string> {
  return atOnce(memberTextsInPieces(text))
}

/** `memberTexts` in short pieces of work. */
export function* memberTextsInPieces(text: string): Pieces<ReadonlyMap<string, string>> {
  const members = new Map<string, string>()
  const isList = /^\s*\[/.test(text)
  let [depth, from, key] = [0, 0, isList ? 0 : (undefined as string | number | undefined)]
  const end = (at: number) => {
    const member = text.slice(from, at).trim()
    if (key !== undefined && member !== "") members.set(String(key), member)
    from = at + 1
  }
  for (let at = 0, paused = 0; at < text.length; at++) {
    if (at - paused > charactersPerPiece) {
      paused = at
      yield
    }
    switch (text[at]) {
      case '"': {
        const last = endOfString(text, at)
        if (depth === 1 && key === undefined) key = JSON.parse(text.slice(at, last + 1)) as string
        at = last
        break
      }
      case ":":
        if (depth === 1) from = at + 1
        break
      case "{":
      case "[":
        if (++depth === 1) from = at + 1
        break
      case ",":
        if (depth !== 1) break
        end(at)
        key = typeof key === "number" ? key + 1 : undefined
        break
      case "}":
      case "]":
        if (depth-- === 1) end(at)
    }
  }
  return members
}

/**
 * JSON text on one line without white space between its parts. Numbers stay as written; strings lose unnecessary
 * escapes.
 */
export function compactJson(text: string): string {
  return atOnce(compactJsonInPieces(text))
}

/** `compactJson` in short pieces of work. */
export function compactJsonInPieces(text: string): Pieces<string> {
  return replacedInPieces(text, /"[^"\\]*(?:\\.[^"\\]*)*"|[ \t\n\r]+/g, (part) =>
    part.startsWith('"') ? JSON.stringify(JSON.parse(part)) : "",
  )
}

function endOfString(text: string, begin: number): number {
  for (let at = begin + 1; ; at++) {
    const char = text[at]
    if (char === "\\") at++
    else if (char === '"') return at
  }
}
