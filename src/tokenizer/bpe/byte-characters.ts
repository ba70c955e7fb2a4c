import { byteCharacters } from "../byte-level.ts"

const encoder = new TextEncoder()
const notAscii = /[^!-~]/

/** A text's UTF-8 bytes, one character each. */
export function toByteCharacters(text: string): string {
  if (!notAscii.test(text)) return text
  let characters = ""
  for (const byte of encoder.encode(text)) characters += byteCharacters[byte]
  return characters
}

/** By code unit: the byte that a character stands for; -1 where it stands for none. */
const byteOf: Int16Array = new Int16Array(0x200).fill(-1)
for (const [byte, character] of byteCharacters.entries()) byteOf[character.charCodeAt(0)] = byte

/** The bytes that a byte-level token stands for; undefined where it has a character that stands for none. */
export function fromByteCharacters(token: string): Uint8Array | undefined {
  const bytes = new Uint8Array(token.length)
  for (let place = 0; place < token.length; place++) {
    const byte = byteOf[token.charCodeAt(place)] ?? -1
    if (byte < 0) return undefined
    bytes[place] = byte
  }
  return bytes
}
