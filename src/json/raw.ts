import { GigpoError } from "../util/errors.ts"
import { textOf } from "./text.ts"

/**
 * JSON text exactly as it was received. It represents its value wherever `writeJson` writes, so that large
 * integers, `20.0`, `1e-07` and the order of keys survive. Fails with BAD_ARGUMENT where the text is not JSON.
 */
export class RawJson {
  readonly text: string

  constructor(text: string) {
    try {
      JSON.parse(text)
    } catch (cause) {
      throw new GigpoError("BAD_ARGUMENT", `RawJson takes JSON, not ${JSON.stringify(text).slice(0, 80)}`, { cause })
    }
    this.text = text
  }

  /** The value in JavaScript, whose numbers have 53 bits and whose objects put keys such as "10" first. */
  parse(): unknown {
    return JSON.parse(this.text)
  }

  /** JSON.stringify would lose what this class keeps. */
  toJSON(): never {
    throw new GigpoError("INTERNAL", "a RawJson was given to JSON.stringify: use writeJson")
  }
}

/**
 * Plain data as JSON, like JSON.stringify, but each RawJson and each value of `parseJson` inside is written verbatim and a
 * bigint as an integer.
 * Members that are undefined are left out. Fails with BAD_ARGUMENT for anything else that JSON does not have: NaN,
 * infinities, functions, symbols, undefined in lists, and objects of classes without toJSON.
 */
export function writeJson(value: unknown): string {
  if (value instanceof RawJson) return value.text
  if (value === null || typeof value === "string" || typeof value === "boolean") return JSON.stringify(value)
  if (typeof value === "bigint" || Number.isFinite(value)) return String(value)
  if (typeof value === "object") return textOf(value) ?? (Array.isArray(value) ? writeList(value) : writeObject(value))
  throw new GigpoError("BAD_ARGUMENT", `${String(value)} is not JSON: give plain data only`)
}

function writeList(items: readonly unknown[]): string {
  return `[${Array.from(items, writeJson).join()}]`
}

function writeObject(value: object): string {
  if ("toJSON" in value && typeof value.toJSON === "function") return writeJson(value.toJSON())
  const prototype = Object.getPrototypeOf(value)
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `an object of the class ${value.constructor?.name} is not JSON: give plain data only`,
    )
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${writeJson(member)}`).join()}}`
}
