import { isObject } from "../options/read.ts"
import { badField } from "./api-error.ts"

// Reading bodies that anybody may have sent. null stands for a field that was left out.

export type Fields = Readonly<Record<string, unknown>>

/** Whether a value is a text, refusing those that UTF-8, and so no prompt, can hold. */
export function isText(value: unknown, path: string): value is string {
  if (typeof value !== "string") return false
  if (!/\p{Surrogate}/u.test(value)) return true
  throw badField(path, "has half a surrogate pair; send whole characters")
}

/** Whether all texts of a JSON value are of whole characters. `JSON.stringify` escapes half a pair, and nothing else so. */
export function isWellFormed(value: unknown): boolean {
  return !/(?<!\\)(?:\\\\)*\\ud[89a-f]/.test(JSON.stringify(value))
}

export class FieldReader {
  readonly #fields: Fields
  readonly #path: string
  readonly #seen = new Set<string>()

  constructor(value: unknown, path = "") {
    if (!isObject(value)) throw badField(path || "The body", "must be an object")
    this.#fields = value
    this.#path = path
  }

  name(field: string): string {
    return this.#path ? `${this.#path}.${field}` : field
  }

  any(field: string): unknown {
    this.#seen.add(field)
    const value = Object.hasOwn(this.#fields, field) ? this.#fields[field] : undefined
    return value ?? undefined
  }

  string(field: string): string | undefined {
    const value = this.any(field)
    if (value === undefined || isText(value, this.name(field))) return value
    throw badField(this.name(field), "must be a string")
  }

  required(field: string): string {
    const value = this.string(field)
    if (value === undefined) throw badField(this.name(field), "is missing; give a string")
    return value
  }

  filled(field: string): string {
    const value = this.required(field)
    if (value === "") throw badField(this.name(field), "is empty")
    return value
  }

  boolean(field: string): boolean | undefined {
    const value = this.any(field)
    if (value !== undefined && typeof value !== "boolean") throw badField(this.name(field), "must be true or false")
    return value as boolean | undefined
  }

  whole(field: string, least: number, most: number): number | undefined {
    const value = this.any(field)
    if (value === undefined) return undefined
    if (!Number.isSafeInteger(value) || (value as number) < least || (value as number) > most)
      throw badField(this.name(field), `must be a whole number from ${least} to ${most}`)
    return value as number
  }

  number(field: string, least: number, most: number): number | undefined {
    const value = this.any(field)
    if (value === undefined) return undefined
    if (typeof value !== "number" || !(value >= least && value <= most))
      throw badField(this.name(field), `must be a number from ${least} to ${most}`)
    return value
  }

  oneOf<T extends string>(field: string, known: readonly T[]): T | undefined {
    const value = this.any(field)
    if (value === undefined) return undefined
    if (!known.includes(value as T)) throw badField(this.name(field), `must be one of ${known.join(", ")}`)
    return value as T
  }

  list(field: string): readonly unknown[] | undefined {
    const value = this.any(field)
    if (value !== undefined && !Array.isArray(value)) throw badField(this.name(field), "must be a list")
    return value as readonly unknown[] | undefined
  }

  /** What says nothing about the reply: read, and left. */
  ignore(...fields: readonly string[]): void {
    for (const field of fields) this.#seen.add(field)
  }

  /** Fields that would change what is sampled, each with the values that do not. */
  neutral(fields: Readonly<Record<string, readonly unknown[]>>): void {
    for (const [field, values] of Object.entries(fields)) {
      const value = this.any(field)
      const same = (other: unknown) => JSON.stringify(other) === JSON.stringify(value)
      if (value === undefined || values.some(same)) continue
      const instead = values.length > 0 ? `: leave it out, or give ${JSON.stringify(values[0])}` : ": leave it out"
      throw badField(this.name(field), `would change what is sampled, and is not supported${instead}`)
    }
  }

  /** Fields of what is not kept here, each with what to do instead. */
  without(fields: Readonly<Record<string, string>>): void {
    for (const [field, instead] of Object.entries(fields))
      if (this.any(field) !== undefined) throw badField(this.name(field), `is not known here: ${instead}`)
  }

  /** A field that nobody has read is refused: what it means would be ignored. */
  done(): void {
    const strange = Object.keys(this.#fields).find(
      (field) => !this.#seen.has(field) && this.#fields[field] !== undefined,
    )
    if (strange !== undefined) throw badField(this.name(strange.slice(0, 100)), "is unknown here; leave it out")
  }
}
