import { unicodeWords } from "./unicode-words.ts"

// Word_Break classes of ASCII (UAX #29, table 3). The three characters that may be inside a word must be between two
// letters (rules WB6, WB7), between two digits (WB11, WB12), or either.
const letter = 1
const digit = 2
const underscore = 4
const betweenLetters = 8
const betweenDigits = 16

const classes = new Uint8Array(128)
for (let code = 0; code < 128; code++) {
  const character = String.fromCharCode(code)
  if (/[a-z]/i.test(character)) classes[code] = letter
  else if (/[0-9]/.test(character)) classes[code] = digit
}
classes[95] = underscore
for (const character of ":.'") classes[character.charCodeAt(0)]! |= betweenLetters
for (const character of ",;.'") classes[character.charCodeAt(0)]! |= betweenDigits

const beyondAscii = /[^\0-\x7f]/

/** Maximum length of a token; longer ones are split, as in Lucene's StandardTokenizer. */
const longestWord = 255

/**
 * Calls `emit` for each word of the text, as in UAX #29 and Lucene's StandardTokenizer: tokens with a letter, a digit
 * or a pictograph. ASCII is handled here; other text by `Intl.Segmenter`, one stretch without white space at a time.
 */
export function forEachWord(text: string, emit: (word: string) => void): void {
  // This white space is a word boundary on both sides.
  for (const stretch of beyondAscii.test(text) ? text.split(/[ \t\n\r]+/) : [text]) {
    if (beyondAscii.test(stretch)) unicodeWords(stretch, (word) => cut(word, emit))
    else asciiWords(stretch, emit)
  }
}

function asciiWords(text: string, emit: (word: string) => void): void {
  const { length } = text
  for (let at = 0; at < length; at++) {
    let current = classes[text.charCodeAt(at)]!
    if (current === 0 || current > underscore) continue
    const start = at
    let seen = 0
    for (;;) {
      seen |= current
      const next = at + 1 < length ? classes[text.charCodeAt(at + 1)]! : 0
      if (next !== 0 && next <= underscore) {
        at++
        current = next
        continue
      }
      const joins = current === letter ? betweenLetters : current === digit ? betweenDigits : 0
      if ((next & joins) === 0 || at + 2 >= length || classes[text.charCodeAt(at + 2)] !== current) break
      at += 2
    }
    if (seen === underscore) continue
    if (at + 1 - start <= longestWord) emit(text.slice(start, at + 1))
    else cut(text.slice(start, at + 1), emit)
  }
}

function cut(word: string, emit: (word: string) => void): void {
  for (let at = 0; at < word.length; at += longestWord) emit(word.slice(at, at + longestWord))
}
