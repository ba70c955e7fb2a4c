/**
 * Escapes text of a model or an environment for printing: escape sequences, other control characters, bidirectional
 * marks and unpaired surrogates. Line feeds stay.
 */
export function visible(text: string): string {
  return text.replace(/(?!\n)[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu, (character) => {
    const code = character.codePointAt(0)!
    return short.get(character) ?? (code < 0x100 ? `\\x${hex(code, 2)}` : `\\u{${hex(code, 4)}}`)
  })
}

const short = new Map([
  ["\t", "\\t"],
  ["\r", "\\r"],
])

function hex(code: number, digits: number): string {
  return code.toString(16).padStart(digits, "0")
}
