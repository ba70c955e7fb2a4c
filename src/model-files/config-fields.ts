import { GigpoError } from "../util/errors.ts"
import { quote } from "./strict-json.ts"

/** Parsed contents of a config.json. */
export type ConfigJson = Readonly<Record<string, unknown>>

/** Maximum bytes of a config.json or adapter_config.json. Those of published models have a few thousand. */
export const largestConfig = 2 ** 20

/** Typed access to the fields of an untrusted config.json. As in transformers, null means a missing field. */
export interface ConfigFields {
  readonly json: ConfigJson
  /** Returns an integer from 1 to `most`. Throws `BAD_MODEL` for a missing field without default. */
  size(key: string, most: number, byDefault?: number): number
  /** Returns a finite number above 0. Throws `BAD_MODEL` for a missing field without default. */
  positive(key: string, byDefault?: number): number
  /** Returns a boolean; `byDefault` is false where it is omitted. */
  flag(key: string, byDefault?: boolean): boolean
  /** Creates a `BAD_MODEL` error that names the file. `what` is a clause without full stop. */
  fail(what: string): GigpoError
}

export function configFields(json: unknown, file: string): ConfigFields {
  const fail = (what: string): GigpoError =>
    new GigpoError("BAD_MODEL", `${file}: ${what}. Correct it or choose another model.`)
  if (typeof json !== "object" || json === null || Array.isArray(json)) throw fail("it is not a JSON object")
  const fields = json as ConfigJson

  const read = <T>(key: string, byDefault: T | undefined, wanted: string, valid: (value: unknown) => boolean): T => {
    const value = fields[key] ?? byDefault
    if (value === undefined) throw fail(`${key} is missing`)
    if (!valid(value)) throw fail(`${key} is ${describe(value)}; it must be ${wanted}`)
    return value as T
  }
  return {
    json: fields,
    size: (key, most, byDefault) =>
      read(key, byDefault, `an integer from 1 to ${most}`, (value) => {
        return typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= most
      }),
    positive: (key, byDefault) =>
      read(key, byDefault, "a number above 0", (value) => {
        return typeof value === "number" && Number.isFinite(value) && value > 0
      }),
    flag: (key, byDefault = false) => read(key, byDefault, "true or false", (value) => typeof value === "boolean"),
    fail,
  }
}

/** Returns a value from an untrusted file as text for a message. */
export function describe(value: unknown): string {
  return typeof value === "string" ? quote(value) : typeof value === "object" ? "an object or a list" : String(value)
}
