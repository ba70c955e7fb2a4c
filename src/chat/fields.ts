import { isDeepStrictEqual } from "node:util"
import { stringify } from "../json/text.ts"
import { isObject } from "../options/read.ts"
import type { Pieces } from "../util/pace.ts"
import { badField } from "./api-error.ts"

// Readers of untrusted request bodies. null means an omitted field.

export type Fields = Readonly<Record<string, unknown>>

/** With the flag u, only an unpaired surrogate matches. */
const unpaired = /\p{Surrogate}/u
/** Maximum characters of a value without effect. */
const longestNeutral = 1024
/** Values between two possible pauses. */
const valuesPerPiece = 1024

/** Whether a value is a string. Throws for unpaired surrogates, which UTF-8 cannot represent. */
export function isText(value: unknown, path: string): value is string {
  if (typeof value !== "string") return false
  if (!unpaired.test(value)) return true
  throw badField(path, "contains an unpaired surrogate; send valid Unicode")
}

/** Whether no text of a JSON value, names included, contains an unpaired surrogate. */
export function* isWellFormed(value: unknown): Pieces<boolean> {
  const waiting = [value]
  for (let seen = 0; waiting.length > 0; ) {
    const part = waiting.pop()
    if (typeof part === "string" && unpaired.test(part)) return false
    if (typeof part !== "object" || part === null) continue
    const names = Array.isArray(part) ? undefined : Object.keys(part)
    const members: ArrayLike<unknown> & Fields = part as never
    const count = names?.length ?? members.length
    for (let at = 0; at < count; at++) {
      const name = names?.[at]
      if (name !== undefined && unpaired.test(name)) return false
      waiting.push(members[name ?? at])
      if (++seen % valuesPerPiece === 0) yield
    }
  }
  return true
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
      if (value === undefined) continue
      const short = stringify(value).length <= longestNeutral
      if (values.some((other) => other === value || (short && isDeepStrictEqual(other, value)))) continue
      const instead = values.length > 0 ? `: leave it out, or give ${JSON.stringify(values[0])}` : ": leave it out"
      throw badField(this.name(field), `would change sampling and is not supported${instead}`)
    }
  }

  /** Rejects fields of features that keep state, each with an alternative. */
  without(fields: Readonly<Record<string, string>>): void {
    for (const [field, instead] of Object.entries(fields))
      if (this.any(field) !== undefined) throw badField(this.name(field), `is not supported: ${instead}`)
  }

  /** Rejects fields that were not read: their meaning would be ignored. */
  done(): void {
    const strange = Object.keys(this.#fields).find(
      (field) => !this.#seen.has(field) && this.#fields[field] !== undefined,
    )
    if (strange !== undefined) throw badField(this.name(strange.slice(0, 100)), "is unknown; leave it out")
  }
}
