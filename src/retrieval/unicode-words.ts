const segmenter = new Intl.Segmenter("en", { granularity: "word" })

// ICU cuts these scripts by dictionaries. The standard, and Lucene, take each Han and Hiragana character, each run of Katakana
// and each run of a south-east Asian script for a word.
const withoutDictionary =
  /[\p{sc=Han}\p{sc=Hiragana}]\p{M}*|[\p{sc=Katakana}\u30fc]+|(?:(?=[\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}])[\p{L}\p{M}])+/gu

// ICU takes a run of underscores for a word and pictographs for none; Lucene the other way about. The ranges are the symbols
// that were Extended_Pictographic up to Unicode 15 and, in newer releases of ICU, no longer are.
const pictograph =
  /[\p{Extended_Pictographic}\p{Regional_Indicator}\u2600-\u2605\u2607-\u2612\u2614-\u2685\u2690-\u2705\u2708-\u2712\u2763-\u2767\u{1f000}-\u{1f0ff}\u{1f249}-\u{1f3fa}\u{1f400}-\u{1f53d}\u{1f546}-\u{1f64f}\u{1f680}-\u{1f6ff}\u{1f90c}-\u{1f93a}\u{1f947}-\u{1faff}]/u
const underscores = /^_+$/

/** The words of a text in any script, by ICU; much slower than the ASCII path. */
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
  for (const { segment, isWordLike } of segmenter.segment(text)) {
    if (isWordLike && !underscores.test(segment)) emit(segment)
    // ICU may leave a space before a joiner and a pictograph attached.
    else if (!isWordLike && pictograph.test(segment)) emit(segment.slice(segment.search(pictograph)))
  }
}
