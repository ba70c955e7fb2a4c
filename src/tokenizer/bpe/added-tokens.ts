import type { Pieces } from "../../util/pace.ts"
import { longestOf } from "../encoder.ts"
import { TextTrie } from "../text-trie.ts"
import { classSource } from "./code-points.ts"
import { show, Unsupported } from "./fields.ts"
import type { Normalizer } from "./normalizer.ts"
import { whiteSpace, wordCharacters } from "./unicode.ts"

/** Token that is looked for in a text before anything else, as tokenizer.json's `added_tokens` have it. */
export interface AddedToken {
  readonly id: number
  readonly content: string
  /** Only where no word character is next to it. */
  readonly single_word: boolean
  /** Takes in the white space before it. */
  readonly lstrip: boolean
  /** Takes in the white space behind it. */
  readonly rstrip: boolean
  /** Looked for in normalized text, by its normalized content. */
  readonly normalized: boolean
  readonly special: boolean
}

/** Part of a text: one added token, or text without any. */
export interface Stretch {
  readonly from: number
  readonly end: number
  readonly id: number | undefined
}

const word = classSource(wordCharacters)
const wordBefore = new RegExp(`${word}$`, "u")
const wordAhead = new RegExp(word, "uy")
const spaces = new RegExp(`${classSource(whiteSpace)}*`, "uy")
const space = new RegExp(classSource(whiteSpace), "u")

/** Places where a token may begin, between two at which the work can pause. */
const perPiece = 256

/** Finds added tokens in a text: the leftmost first, of several that begin there the longest. None may begin where `literal` says so. */
export class AddedTokens {
  readonly #byContent = new Map<string, AddedToken>()
  readonly #contents: TextTrie
  /** First code units of contents. */
  readonly #firsts: RegExp

  constructor(tokens: readonly AddedToken[], normalizer: Normalizer | undefined) {
    for (const token of tokens) {
      const content = normalizer ? normalizer.apply(token.content) : token.content
      if (content === "")
        throw new Unsupported(`has the added token ${show(token.content)}, which is nothing once normalized`)
      const other = this.#byContent.get(content)
      if (other)
        throw new Unsupported(
          `has the added tokens ${show(other.content)} and ${show(token.content)} for the same text`,
        )
      this.#byContent.set(content, token)
    }
    this.#contents = new TextTrie(this.#byContent.keys())
    this.#firsts = new RegExp(
      longestOf([...new Set(Array.from(this.#byContent.keys(), (content) => content[0]!))]),
      "g",
    )
  }

  *split(text: string, isLiteral: (index: number) => boolean): Pieces<Stretch[]> {
    const stretches: Stretch[] = []
    let [taken, found] = [0, 0]
    const firsts = this.#firsts
    let at = 0
    while (this.#byContent.size > 0) {
      firsts.lastIndex = at
      if (!firsts.test(text)) break
      const begin = firsts.lastIndex - 1
      at = begin + 1
      if (++found % perPiece === 0) yield
      const length = this.#contents.longestAt(text, begin)
      if (length === 0 || isLiteral(begin)) continue
      const behind = begin + length
      const token = this.#byContent.get(text.slice(begin, behind))!
      at = behind
      if (token.single_word && hasWordBeside(text, begin, behind)) continue
      const from = token.lstrip ? Math.max(spaceBefore(text, begin), taken) : begin
      const end = token.rstrip ? spaceBehind(text, behind) : behind
      if (taken < from) stretches.push({ from: taken, end: from, id: undefined })
      // Nothing is left of a token of white space that the one before it has taken in.
      if (from < end) stretches.push({ from, end, id: token.id })
      taken = end
    }
    if (taken < text.length) stretches.push({ from: taken, end: text.length, id: undefined })
    return stretches
  }
}

function hasWordBeside(text: string, from: number, end: number): boolean {
  wordAhead.lastIndex = end
  return wordBefore.test(text.slice(Math.max(0, from - 2), from)) || wordAhead.test(text)
}

function spaceBefore(text: string, at: number): number {
  let from = at
  while (from > 0 && space.test(text[from - 1]!)) from--
  return from
}

function spaceBehind(text: string, at: number): number {
  spaces.lastIndex = at
  spaces.test(text)
  return spaces.lastIndex
}
