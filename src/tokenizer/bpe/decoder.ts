import { fromByteCharacters } from "./byte-characters.ts"
import {
  isBoolean,
  isCharacter,
  isCount,
  isList,
  isString,
  kindOf,
  optional,
  readFields,
  unsupportedKind,
} from "./fields.ts"
import { atMostSteps, checkGrowth } from "./limits.ts"
import { readMetaspace } from "./pre-tokenizer.ts"
import { readPattern } from "./read-pattern.ts"

/** Function from token texts to the parts of the decoded text. */
export type Decoder = (tokens: readonly string[]) => readonly string[]

const isAny = (_value: unknown): _value is unknown => true
const encoder = new TextEncoder()
const decoder = new TextDecoder("utf-8", { ignoreBOM: true })

/** Decoder of tokenizer.json; without one, tokens are separated by spaces. Throws Unsupported for an unsupported decoder. */
export function createDecoder(json: unknown): Decoder {
  if (json === null || json === undefined) return (tokens) => [tokens.join(" ")]
  const steps = atMostSteps(readSteps(json), "decoders")
  checkGrowth(steps, "decoders")
  return (tokens) => steps.reduce((texts, { apply }) => apply(texts), tokens)
}

interface Step {
  readonly apply: Decoder
  /** Maximum number of UTF-16 units of the output per unit of the input. */
  readonly growth: number
}

function stepOf(apply: Decoder, growth = 1): Step[] {
  return [{ apply, growth }]
}

function readSteps(json: unknown): Step[] {
  const kind = kindOf(json, "decoder")
  const where = `the decoder ${kind}`
  switch (kind) {
    case "Sequence":
      return readFields(json, where, { type: isString, decoders: isList }).decoders.flatMap(readSteps)
    case "ByteLevel":
      readFields(json, where, {
        type: isString,
        add_prefix_space: optional(isBoolean),
        trim_offsets: optional(isBoolean),
        use_regex: optional(isBoolean),
      })
      return stepOf(decodeByteLevel)
    case "ByteFallback":
      readFields(json, where, { type: isString })
      return stepOf(decodeByteFallback)
    case "Fuse":
      readFields(json, where, { type: isString })
      return stepOf((tokens) => [tokens.join("")])
    case "Strip": {
      const { content, start, stop } = readFields(json, where, {
        type: isString,
        content: isCharacter,
        start: isCount,
        stop: isCount,
      })
      return stepOf((tokens) => tokens.map((token) => strip(token, content, start, stop)))
    }
    case "Replace": {
      const { pattern, content } = readFields(json, where, { type: isString, pattern: isAny, content: isString })
      const found = readPattern(pattern, where)
      return stepOf(
        (tokens) => found.limited(() => tokens.map((token) => token.replace(found.regExp, () => content))),
        Math.max(1, content.length / found.least),
      )
    }
    case "Metaspace": {
      const { replacement, scheme } = readMetaspace(json, where)
      const replaced = (index: number) => (index === 0 && scheme !== "never" ? "" : " ")
      return stepOf((tokens) => tokens.map((token, index) => token.replaceAll(replacement, replaced(index))))
    }
    case "BPEDecoder": {
      const { suffix } = readFields(json, where, { type: isString, suffix: isString })
      return stepOf(
        (tokens) => tokens.map((token, index) => token.replaceAll(suffix, index === tokens.length - 1 ? "" : " ")),
        suffix === "" ? 2 : 1,
      )
    }
    default:
      throw unsupportedKind(json, "decoder")
  }
}

function decodeByteLevel(tokens: readonly string[]): readonly string[] {
  return [decodeBytes(tokens.map((token) => fromByteCharacters(token) ?? encoder.encode(token)))]
}

function decodeBytes(parts: readonly Uint8Array[]): string {
  return decoder.decode(Buffer.concat(parts))
}

/** Decodes byte tokens. Each byte of an invalid UTF-8 sequence gives U+FFFD. */
function decodeByteFallback(tokens: readonly string[]): readonly string[] {
  const texts: string[] = []
  let bytes: number[] = []
  const flush = () => {
    const text = decoder.decode(Uint8Array.from(bytes))
    const valid = Buffer.from(text).equals(Buffer.from(bytes))
    if (bytes.length > 0) texts.push(valid ? text : "\ufffd".repeat(bytes.length))
    bytes = []
  }
  for (const token of tokens) {
    const byte = fallbackByte(token)
    if (byte !== undefined) bytes.push(byte)
    else {
      flush()
      texts.push(token)
    }
  }
  flush()
  return texts
}

/** Byte of a token such as `<0x0A>`. */
export function fallbackByte(token: string): number | undefined {
  return /^<0x(?:[0-9A-Fa-f]{2}|\+[0-9A-Fa-f])>$/.test(token) ? Number.parseInt(token.slice(3, 5), 16) : undefined
}

function strip(token: string, content: string, start: number, stop: number): string {
  const characters = [...token]
  let [from, end] = [0, characters.length]
  while (from < start && characters[from] === content) from++
  while (characters.length - end < stop && end > from && characters[end - 1] === content) end--
  return characters.slice(from, end).join("")
}
