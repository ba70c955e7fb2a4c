import { stopWords } from "../../retrieval/analyse.ts"

/** The nouns of a title, lower-cased, in order and with repetitions. */
export type NounTagger = (title: string) => readonly string[]

/**
 * Stands in for the part-of-speech model of the original (spaCy `en_core_web_sm`, NOUN and PROPN): every word of letters that
 * is no stop word. In product titles nearly every such word is tagged a noun or a name; on the four titles whose scores WebShop's
 * own tests state (0.333, 0.3, 0.15, below 0.05; tolerance 0.01) this rule gives 0.333, 0.294, 0.154 and 0. It matters only where
 * the product bought is not the goal's.
 */
export function contentWords(title: string): string[] {
  const words = title.match(/[A-Za-z0-9'-]+/g) ?? []
  return words
    .filter((word) => /^[A-Za-z][A-Za-z'-]*$/.test(word))
    .map((word) => word.toLowerCase())
    .filter((word) => !stopWords.has(word))
}
