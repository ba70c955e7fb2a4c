import { GigpoError } from "../util/errors.ts"
import { textOf } from "./text.ts"

/**
 * JSON text exactly as received. `writeJson` writes it verbatim, so that large integers, `20.0`, `1e-07` and the order
 * of keys are preserved. Throws `BAD_ARGUMENT` if the text is not JSON.
 */
export class RawJson {
  readonly text: string

  constructor(text: string) {
    try {
      JSON.parse(text)
    } catch (cause) {
      throw new GigpoError("BAD_ARGUMENT", `RawJson needs JSON, not ${JSON.stringify(text).slice(0, 80)}`, { cause })
    }
    this.text = text
  }

  /** For a text that is known to be JSON, such as the source of a value of `parseJson`. */
  static known(text: string): RawJson {
    return Object.assign(Object.create(RawJson.prototype) as object, { text }) as RawJson
  }

  /** Parsed value in JavaScript, with 53-bit numbers and with keys such as "10" first. */
  parse(): unknown {
    return JSON.parse(this.text)
  }

  /** Throws: JSON.stringify would lose what this class preserves. */
  toJSON(): never {
    throw new GigpoError("INTERNAL", "a RawJson was given to JSON.stringify: use writeJson")
  }
}

/**
 * Writes plain data as JSON, like JSON.stringify. RawJson and values of `parseJson` are written verbatim, a bigint as
 * an integer. Undefined members are omitted. Throws `BAD_ARGUMENT` for other values that JSON lacks: NaN, infinities,
 * functions, symbols, undefined in lists, and class instances without toJSON.
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
