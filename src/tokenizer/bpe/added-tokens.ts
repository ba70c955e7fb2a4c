import { lazy } from "../../util/lazy.ts"
import type { Pieces } from "../../util/pace.ts"
import { longestOf } from "../encoder.ts"
import { TextTrie } from "../text-trie.ts"
import { classSource } from "./code-points.ts"
import { show, Unsupported } from "./fields.ts"
import type { Normalizer } from "./normalizer.ts"
import { whiteSpace, wordCharacters } from "./unicode.ts"

/** Entry of `added_tokens` of tokenizer.json. Added tokens are matched in a text before all other steps. */
export interface AddedToken {
  readonly id: number
  readonly content: string
  /** Whether the token only matches without adjacent word characters. */
  readonly single_word: boolean
  /** Whether the match includes white space before the token. */
  readonly lstrip: boolean
  /** Whether the match includes white space after the token. */
  readonly rstrip: boolean
  /** Whether the normalized content is matched in the normalized text. */
  readonly normalized: boolean
  readonly special: boolean
}

/** Part of a text: an added token, or text without added tokens. */
export interface Stretch {
  readonly from: number
  readonly end: number
  readonly id: number | undefined
}

const wordBefore = lazy(() => new RegExp(`${classSource(wordCharacters())}$`, "u"))
const wordAhead = lazy(() => new RegExp(classSource(wordCharacters()), "uy"))
const spaces = new RegExp(`${classSource(whiteSpace)}*`, "uy")
const space = new RegExp(classSource(whiteSpace), "u")

/** Number of candidate places between two possible pauses. */
const perPiece = 256

/** Matcher of added tokens: leftmost match first, and the longest of several at the same index. No match begins at an index in `literal`. */
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
      // A white-space token may be empty, if the token before includes its text.
      if (from < end) stretches.push({ from, end, id: token.id })
      taken = end
    }
    if (taken < text.length) stretches.push({ from: taken, end: text.length, id: undefined })
    return stretches
  }
}

function hasWordBeside(text: string, from: number, end: number): boolean {
  wordAhead().lastIndex = end
  return wordBefore().test(text.slice(Math.max(0, from - 2), from)) || wordAhead().test(text)
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
