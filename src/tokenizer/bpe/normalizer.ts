import { toByteCharacters } from "./byte-characters.ts"
import { classSource } from "./code-points.ts"
import { isBoolean, isList, isString, kindOf, readFields, unsupportedKind } from "./fields.ts"
import { atMostSteps, checkGrowth } from "./limits.ts"
import { readPattern } from "./read-pattern.ts"
import { neverNormalized, whiteSpace } from "./unicode.ts"
import { type UnicodeForm, unicodeForm } from "./unicode-form.ts"

export interface Normalizer {
  apply(text: string): string
  /** Maps ascending indices of the text to ascending indices of the normalized text. */
  move(text: string, indices: readonly number[]): readonly number[]
}

interface Step extends Normalizer {
  /** Maximum number of UTF-16 units of the output per unit of the input, without a prefix. */
  readonly growth: number
}

/** Normalizer of tokenizer.json; undefined if there is none. Throws Unsupported for an unsupported normalizer. */
export function createNormalizer(json: unknown): Normalizer | undefined {
  const steps = atMostSteps(readSteps(json), "normalizers")
  if (steps.length === 0) return undefined
  checkGrowth(steps, "normalizers")
  return {
    apply: (text) => steps.reduce((result, step) => step.apply(result), text),
    move: (text, indices) =>
      steps.reduce((at, step) => ({ text: step.apply(at.text), indices: step.move(at.text, at.indices) }), {
        text,
        indices,
      }).indices,
  }
}

function readSteps(json: unknown): Step[] {
  if (json === null || json === undefined) return []
  const kind = kindOf(json, "normalizer")
  const where = `the normalizer ${kind}`
  switch (kind) {
    case "Sequence":
      return readFields(json, where, { type: isString, normalizers: isList }).normalizers.flatMap(readSteps)
    case "NFC":
    case "NFD":
    case "NFKC":
    case "NFKD":
      readFields(json, where, { type: isString })
      return [local(createUnicodeForm(kind), formGrowth[kind])]
    case "Prepend": {
      const { prepend } = readFields(json, where, { type: isString, prepend: isShort })
      return [
        shifting(
          (text) => (text === "" ? "" : prepend + text),
          () => prepend.length,
        ),
      ]
    }
    case "Replace": {
      const { pattern, content } = readFields(json, where, { type: isString, pattern: isAny, content: isShort })
      const found = readPattern(pattern, where)
      return [local((text) => found.replace(text, content), Math.max(1, content.length / found.least))]
    }
    case "Strip": {
      const sides = readFields(json, where, { type: isString, strip_left: isBoolean, strip_right: isBoolean })
      const leading = (text: string) => (sides.strip_left ? text.length - text.replace(leadingSpace, "").length : 0)
      const apply = (text: string) => {
        const stripped = text.slice(leading(text))
        return sides.strip_right ? stripTrailing(stripped) : stripped
      }
      return [shifting(apply, (text) => -leading(text))]
    }
    case "ByteLevel":
      readFields(json, where, { type: isString })
      return [local(toByteCharacters, 3)]
    default:
      throw unsupportedKind(json, "normalizer")
  }
}

const isAny = (_value: unknown): _value is unknown => true
/** Whether a value is a short string; published tokenizers insert one character. */
const isShort = (value: unknown): value is string => isString(value) && value.length <= 64

/** Step that changes parts of a text independently: an index moves with the length of the changed parts before it. */
function local(apply: (text: string) => string, growth: number): Step {
  const move = (text: string, indices: readonly number[]) => {
    let [from, end] = [0, 0]
    return indices.map((index) => {
      end += apply(text.slice(from, index)).length
      from = index
      return end
    })
  }
  return { apply, growth, move }
}

/** Step that changes a text at its ends. A prefix belongs to the text that follows it. */
function shifting(apply: (text: string) => string, shift: (text: string) => number): Step {
  const move = (text: string, indices: readonly number[]) => {
    const by = shift(text)
    const moved = indices.map((index) => Math.max(0, index + by))
    return indices[0] === 0 && by > 0 ? [0, ...moved] : moved
  }
  return { apply, growth: 1, move }
}

const leadingSpace = new RegExp(`^${classSource(whiteSpace)}+`, "u")
const space = new RegExp(classSource(whiteSpace), "u")

function stripTrailing(text: string): string {
  let end = text.length
  while (end > 0 && space.test(text[end - 1]!)) end--
  return text.slice(0, end)
}

/** Maximum number of UTF-16 units of a normalized character. */
const formGrowth: Readonly<Record<UnicodeForm, number>> = { NFC: 3, NFD: 4, NFKC: 18, NFKD: 18 }
const notAscii = /[^\0-\x7f]/

/** Normalizes text between the characters that are not in the library's older Unicode tables. */
function createUnicodeForm(form: UnicodeForm): (text: string) => string {
  const untouched = new RegExp(`(${neverNormalized()}+)`, "v")
  return (text) => {
    if (!notAscii.test(text)) return text
    const parts = text.split(untouched)
    return parts.map((part, index) => (index % 2 === 0 ? unicodeForm(part, form) : part)).join("")
  }
}
