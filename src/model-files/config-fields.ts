import { GigpoError } from "../util/errors.ts"
import { quote } from "./strict-json.ts"

/** The parsed object of a config.json. */
export type ConfigJson = Readonly<Record<string, unknown>>

/** Bytes of a config.json or adapter_config.json. Those of real models have some thousands. */
export const largestConfig = 2 ** 20

/** Reads fields of an untrusted config.json; as in transformers, null stands for a missing field. */
export interface ConfigFields {
  readonly json: ConfigJson
  /** A whole number from 1 to `most`. Without a default the field must be there. */
  size(key: string, most: number, byDefault?: number): number
  /** A finite number above 0. */
  positive(key: string, byDefault?: number): number
  /** True or false; default false. */
  flag(key: string): boolean
  /** `BAD_MODEL` that names the file. `what` is a clause without full stop. */
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
      read(key, byDefault, `a whole number from 1 to ${most}`, (value) => {
        return typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= most
      }),
    positive: (key, byDefault) =>
      read(key, byDefault, "a number above 0", (value) => {
        return typeof value === "number" && Number.isFinite(value) && value > 0
      }),
    flag: (key) => read(key, false, "true or false", (value) => typeof value === "boolean"),
    fail,
  }
}

/** A value from an untrusted file, for a message. */
export function describe(value: unknown): string {
  return typeof value === "string" ? quote(value) : typeof value === "object" ? "an object or a list" : String(value)
}
