import { warn } from "../util/warn.ts"
import { quote } from "./strict-json.ts"

const warned = new Set<string>()

/**
 * Warns of unknown keys in the configuration file of another library, once per process, file and set of keys. As in
 * transformers, null means a missing key.
 */
export function warnOfUnknownKeys(
  file: string,
  json: Readonly<Record<string, unknown>>,
  known: { has(key: string): boolean },
): void {
  const unknown = Object.keys(json).filter((key) => (json[key] ?? undefined) !== undefined && !known.has(key))
  if (unknown.length === 0) return
  const names = unknown.slice(0, 20).map(quote).join(", ")
  const rest = unknown.length > 20 ? ` and ${unknown.length - 20} more` : ""
  const one = unknown.length === 1
  warnOnce(
    `${file}: the ${one ? "key" : "keys"} ${names}${rest} ${one ? "is" : "are"} unknown and ${one ? "has" : "have"} no ` +
      "effect. If one of them changes what the model computes, do not use this model with gigpo.",
  )
}

/** Prints a warning, once per process. */
export function warnOnce(message: string): void {
  if (warned.has(message)) return
  warned.add(message)
  warn(message)
}

/** Returns the words of the texts as a set. */
export function keySet(...texts: readonly string[]): ReadonlySet<string> {
  return new Set(texts.flatMap((text) => text.split(/\s+/)).filter((key) => key !== ""))
}
