import { RawJson, writeJson } from "../../json/raw.ts"
import { textOf } from "../../json/text.ts"
import type { Pieces } from "../../util/pace.ts"
import { Dict } from "./dict.ts"
import { parseJson } from "./parse-json.ts"
import type { Value } from "./values.ts"

/**
 * Converts plain data to Python values, as json.loads does with its JSON. Strings, which may have megabytes, are passed on directly. Pauses
 * between the parts of lists and objects.
 *
 * @throws GigpoError `BAD_ARGUMENT` for values that are not plain data; see `writeJson`
 */
export function* plainValue(plain: unknown): Pieces<Value> {
  if (plain === null || typeof plain === "string" || typeof plain === "boolean") return plain
  if (!isOwn(plain)) return parseJson(writeJson(plain))
  if (Array.isArray(plain)) {
    const items: Value[] = []
    for (const item of plain as unknown[]) {
      items.push(yield* plainValue(item))
      yield
    }
    return items
  }
  const dict = new Dict()
  for (const [key, member] of Object.entries(plain)) {
    if (member !== undefined) dict.set(key, yield* plainValue(member))
  }
  return dict
}

/** Whether a value is a plain list or object, whose members are converted; the JSON of others is kept as text. */
function isOwn(value: unknown): value is object {
  if (typeof value !== "object" || value === null || value instanceof RawJson || textOf(value) !== undefined)
    return false
  return Array.isArray(value) || (Object.getPrototypeOf(value) === Object.prototype && !("toJSON" in value))
}
