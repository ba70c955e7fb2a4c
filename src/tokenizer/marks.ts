import { longestOf } from "./encoder.ts"
import type { Masks } from "./masks.ts"
import { TextTrie } from "./text-trie.ts"

/** Added token of a tokenizer. */
export interface AddedToken {
  readonly content: string
  /** Whether `decode` with `skipSpecial` omits the token. */
  readonly special: boolean
}

/**
 * Whether the text of an added token is a mark of a chat format. Words and white space that are added to vocabularies are ordinary text.
 */
export function isMark({ content, special }: AddedToken): boolean {
  return content.trim() !== "" && (special || /^[<[{(|].*[>\]})|]$/s.test(content))
}

/** Marks, with the masking of contents in which a mark could be recognized within the prompt. */
export class Marks {
  readonly #marks: TextTrie
  /** First characters of marks. */
  readonly #firsts: RegExp
  readonly #longest: number
  /** Suffixes of marks by their first character; the template may have written the part before. */
  readonly #rests = new Map<string, Set<string>>()

  constructor(marks: readonly string[]) {
    const firsts = [...new Set(marks.map((mark) => mark[0]!))]
    this.#marks = new TextTrie(marks)
    this.#firsts = new RegExp(longestOf(firsts), "g")
    this.#longest = Math.max(0, ...marks.map(({ length }) => length))
    for (const mark of marks)
      for (let at = 1; at < mark.length; at++) {
        const rest = mark.slice(at)
        const rests = this.#rests.get(rest[0]!) ?? new Set()
        this.#rests.set(rest[0]!, rests.add(rest))
      }
  }

  /**
   * Text with masks in place of the first characters of marks, including marks that are cut off at the end of the text. `inner` also masks
   * the first character of the text if a mark that the template began could continue there.
   */
  masked(text: string, masks: Masks, { inner = false }: { readonly inner?: boolean } = {}): string {
    const places: number[] = []
    for (const { index } of text.matchAll(this.#firsts)) if (this.#marks.longestAt(text, index) > 0) places.push(index)
    // Templates strip contents.
    for (const end of new Set([text.length, text.trimEnd().length])) places.push(...this.#cutOff(text, end))
    if (inner)
      for (const start of new Set([0, text.length - text.trimStart().length]))
        places.push(...this.#goingOn(text, start))
    if (places.length === 0) return text
    let [masked, end] = ["", 0]
    for (const place of [...new Set(places)].sort((a, b) => a - b)) {
      masked += text.slice(end, place) + masks.of(text[place]!)
      end = place + 1
    }
    return masked + text.slice(end)
  }

  /** Proper beginnings of marks at an end of the text: the template may write the rest. */
  #cutOff(text: string, end: number): number[] {
    const places: number[] = []
    for (let at = Math.max(0, end - this.#longest + 1); at < end; at++)
      if (this.#marks.hasLonger(text, at, end)) places.push(at)
    return places
  }

  #goingOn(text: string, start: number): number[] {
    const end = text.trimEnd().length
    const left = end - start <= this.#longest ? text.slice(start, end) : undefined
    for (const rest of this.#rests.get(text[start] ?? "") ?? [])
      if (text.startsWith(rest, start) || (left !== undefined && rest.startsWith(left))) return [start]
    return []
  }
}

/** Marks by the characters within them, which may be read from a text of which some characters were masked. */
export class InnerPlaces {
  readonly #within = new Map<string, { readonly mark: string; readonly before: number }[]>()

  constructor(marks: readonly string[]) {
    for (const mark of marks)
      for (let before = 1; before < mark.length; before++) {
        const places = this.#within.get(mark[before]!) ?? []
        places.push({ mark, before })
        this.#within.set(mark[before]!, places)
      }
  }

  /** Where marks begin that are not the template's: at a mask, or before one that stands within the mark. */
  literal(text: string, masked: ReadonlySet<number>): Set<number> {
    const places = new Set(masked)
    for (const at of masked)
      for (const { mark, before } of this.#within.get(text[at]!) ?? [])
        if (text.startsWith(mark, at - before)) places.add(at - before)
    return places
  }
}
