import { isObject } from "../options/read.ts"
import { badField } from "./api-error.ts"

// Readers of untrusted request bodies. null means an omitted field.

export type Fields = Readonly<Record<string, unknown>>

/** Whether a value is a string. Throws for unpaired surrogates, which UTF-8 cannot represent. */
export function isText(value: unknown, path: string): value is string {
  if (typeof value !== "string") return false
  if (!/\p{Surrogate}/u.test(value)) return true
  throw badField(path, "contains an unpaired surrogate; send valid Unicode")
}

/**
 * Whether no string of a JSON value contains an unpaired surrogate. `JSON.stringify` escapes these and no others in
 * that form.
 */
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
      throw badField(this.name(field), `must be an integer from ${least} to ${most}`)
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

  /** Accepts fields without effect on the completion. */
  ignore(...fields: readonly string[]): void {
    for (const field of fields) this.#seen.add(field)
  }

  /** Accepts fields that would change sampling only with values that have no effect. */
  neutral(fields: Readonly<Record<string, readonly unknown[]>>): void {
    for (const [field, values] of Object.entries(fields)) {
      const value = this.any(field)
      const same = (other: unknown) => JSON.stringify(other) === JSON.stringify(value)
      if (value === undefined || values.some(same)) continue
      const instead = values.length > 0 ? `: leave it out, or give ${JSON.stringify(values[0])}` : ": leave it out"
      throw badField(this.name(field), `would change sampling and is not supported${instead}`)
    }
  }

  /** Refuses fields of features that keep state, each with an alternative. */
  without(fields: Readonly<Record<string, string>>): void {
    for (const [field, instead] of Object.entries(fields))
      if (this.any(field) !== undefined) throw badField(this.name(field), `is not supported: ${instead}`)
  }

  /** Refuses fields that were not read: their meaning would be ignored. */
  done(): void {
    const strange = Object.keys(this.#fields).find(
      (field) => !this.#seen.has(field) && this.#fields[field] !== undefined,
    )
    if (strange !== undefined) throw badField(this.name(strange.slice(0, 100)), "is unknown; leave it out")
  }
}
