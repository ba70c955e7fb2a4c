import { readFile, stat } from "node:fs/promises"
import { GigpoError } from "../util/errors.ts"

export type JsonObject = Readonly<Record<string, unknown>>

const megabyte = 2 ** 20

/** Maximum size of each kind of file in bytes, well above published tokenizers (the largest have about 35 MB). */
export const sizeLimits: { readonly tokenizer: number; readonly config: number; readonly template: number } = {
  tokenizer: 128 * megabyte,
  config: 16 * megabyte,
  template: megabyte,
}

/** Reads a text file; undefined for an optional file that does not exist. Throws BAD_TOKENIZER. */
export function readText(path: string, limit: number): Promise<string>
export function readText(path: string, limit: number, optional: "optional"): Promise<string | undefined>
export async function readText(path: string, limit: number, optional?: "optional"): Promise<string | undefined> {
  try {
    const file = await stat(path)
    if (!file.isFile()) throw badTokenizer(path, "is not a file")
    if (file.size > limit) throw badTokenizer(path, `has ${file.size} bytes, more than the ${limit} allowed`)
    return await readFile(path, "utf8")
  } catch (cause) {
    if (GigpoError.is(cause)) throw cause
    const missing = (cause as NodeJS.ErrnoException).code === "ENOENT"
    if (missing && optional) return undefined
    throw badTokenizer(path, missing ? "is missing" : "cannot be read", cause)
  }
}

/** Reads a JSON file with an object; undefined for an optional file that does not exist. Throws BAD_TOKENIZER. */
export function readJson(path: string, limit: number): Promise<JsonObject>
export function readJson(path: string, limit: number, optional: "optional"): Promise<JsonObject | undefined>
export async function readJson(path: string, limit: number, optional?: "optional"): Promise<JsonObject | undefined> {
  const text = optional ? await readText(path, limit, optional) : await readText(path, limit)
  if (text === undefined) return undefined
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw badTokenizer(path, "is not JSON", cause)
  }
  if (!isObject(value)) throw badTokenizer(path, "does not contain a JSON object")
  return value
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value)
}

export function badTokenizer(path: string, what: string, cause?: unknown): GigpoError {
  const message = `${path} ${what}; copy the file from the original model again`
  return new GigpoError("BAD_TOKENIZER", message, cause === undefined ? {} : { cause })
}
