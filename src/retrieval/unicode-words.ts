import { lazy } from "../util/lazy.ts"

/** ICU takes 20 ms to load its data. */
const segmenter = lazy(() => new Intl.Segmenter("en", { granularity: "word" }))

// ICU segments these scripts by dictionaries. UAX #29 and Lucene treat each Han and Hiragana character, each run of
// Katakana and each run of a south-east Asian script as a word.
const withoutDictionary =
  /[\p{sc=Han}\p{sc=Hiragana}]\p{M}*|[\p{sc=Katakana}\u30fc]+|(?:(?=[\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}])[\p{L}\p{M}])+/gu

// ICU treats a run of underscores as a word and pictographs as none; Lucene does the opposite. The ranges are symbols
// that were Extended_Pictographic up to Unicode 15 and no longer are in newer releases of ICU.
const pictograph =
  /[\p{Extended_Pictographic}\p{Regional_Indicator}\u2600-\u2605\u2607-\u2612\u2614-\u2685\u2690-\u2705\u2708-\u2712\u2763-\u2767\u{1f000}-\u{1f0ff}\u{1f249}-\u{1f3fa}\u{1f400}-\u{1f53d}\u{1f546}-\u{1f64f}\u{1f680}-\u{1f6ff}\u{1f90c}-\u{1f93a}\u{1f947}-\u{1faff}]/u
const underscores = /^_+$/

/** Words of a text in any script, by ICU; much slower than the ASCII path. */
export function unicodeWords(text: string, emit: (word: string) => void): void {
  let from = 0
  for (const match of text.matchAll(withoutDictionary)) {
    segmentedWords(text.slice(from, match.index), emit)
    emit(match[0])
    from = match.index + match[0].length
  }
  segmentedWords(text.slice(from), emit)
}

function segmentedWords(text: string, emit: (word: string) => void): void {
  if (text === "") return
  for (const { segment, isWordLike } of segmenter().segment(text)) {
    if (isWordLike && !underscores.test(segment)) emit(segment)
    // ICU may attach a leading space to a joiner and a pictograph.
    else if (!isWordLike && pictograph.test(segment)) emit(segment.slice(segment.search(pictograph)))
  }
}
