import { porterStem } from "./porter.ts"
import { forEachWord } from "./words.ts"

/** Stop words of Lucene's English analyzer, for texts and queries. */
export const stopWords: ReadonlySet<string> = new Set(
  `a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to was
  will with`.split(/\s+/),
)

/**
 * Terms of a text as in Lucene's English analyzer: words by UAX #29 without a final 's, in lower case, without stop
 * words, stemmed by Porter's algorithm.
 */
export function analyse(text: string): string[] {
  const terms: string[] = []
  forEachWord(text, (word) => {
    const term = termOf(word)
    if (term !== undefined) terms.push(term)
  })
  return terms
}

/** Term of a word; `undefined` for a stop word. */
export function termOf(word: string): string | undefined {
  const lower = lowerCase(possessive.test(word) ? word.slice(0, -2) : word)
  return stopWords.has(lower) ? undefined : porterStem(lower)
}

const possessive = /['\u2019\uff07][sS]$/

/** Lower case by code points, as in Lucene: a final sigma is a sigma, and a dotted İ becomes i. */
function lowerCase(word: string): string {
  if (/^[\0-\x7f]*$/.test(word)) return word.toLowerCase()
  let lower = ""
  for (const character of word) lower += character === "İ" ? "i" : character.toLowerCase()
  return lower
}
