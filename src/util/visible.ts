/**
 * Escapes text of a model or an environment for printing: escape sequences, other control characters, bidirectional
 * marks and unpaired surrogates. Line feeds stay, and so do joiners between characters that they join or keep apart.
 */
export function visible(text: string): string {
  return text.replace(hidden, (character) => {
    const code = character.codePointAt(0)!
    return short.get(character) ?? (code < 0x100 ? `\\x${hex(code, 2)}` : `\\u{${hex(code, 4)}}`)
  })
}

/** Characters of scripts in which U+200C and U+200D determine how letters are written. */
const joined = ["Arabic", "Syriac", "Mongolian", "Devanagari", "Bengali", "Gurmukhi", "Gujarati", "Oriya"]
  .concat(["Tamil", "Telugu", "Kannada", "Malayalam", "Sinhala"])
  .map((script) => `\\p{Script=${script}}`)
  .join("")
const before = `[${joined}\\p{Extended_Pictographic}\\p{Emoji_Modifier}\ufe0f]`
const joiner = `${before}[\u200c\u200d](?=[${joined}\\p{Extended_Pictographic}])`
const hidden = new RegExp(`(?!\n)[\\p{Cc}\\p{Cf}\\p{Cs}\\p{Co}\\p{Zl}\\p{Zp}](?<!${joiner})`, "gu")

const short = new Map([
  ["\t", "\\t"],
  ["\r", "\\r"],
])

function hex(code: number, digits: number): string {
  return code.toString(16).padStart(digits, "0")
}
