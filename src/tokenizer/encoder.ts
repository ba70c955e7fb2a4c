import type { Pieces } from "../util/pace.ts"

/**
 * Text to ids. No special tokens are added, but added tokens in the text are read, except those that would begin at one of the UTF-16
 * indices in `literal`: that text is encoded as text. A lone surrogate counts as U+FFFD.
 */
export type Encode = (text: string, literal?: ReadonlySet<number>) => Int32Array

export interface EncodeOptions {
  readonly literal?: ReadonlySet<number> | undefined
  /** Most ids; a text with more fails with TooManyTokens as soon as that is certain. Default: any number. */
  readonly most?: number | undefined
}

/** The same in short pieces of work. */
export type EncodeInPieces = (text: string, options?: EncodeOptions) => Pieces<Int32Array>

/** Source of a pattern for the longest of these texts that stands at a place. */
export function longestOf(texts: readonly string[]): string {
  if (texts.length === 0) return "(?!)"
  const longestFirst = texts.toSorted((a, b) => b.length - a.length)
  return longestFirst.map((text) => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")).join("|")
}
