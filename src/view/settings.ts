import { isObject } from "../options/read.ts"
import { leaves, type RunConfig } from "../runs/config.ts"
import { type Secrecy, secrecyOf } from "../secrets/names.ts"
import { argumentWithoutSecrets, lookedBack, redacted } from "../secrets/texts.ts"
import type { RunInfo } from "./data/source.ts"

/** Values of a configuration by dotted key: lists as JSON, non-finite numbers as text, secrets redacted. */
export function settingsOf(config: RunConfig): RunInfo["settings"] {
  return Object.fromEntries(
    [...leaves(config)].map(([key, value]) => {
      const cleanedValue = withoutSecrets(value, key.split(".").map(secrecyOfKey).find(Boolean))
      if (
        cleanedValue === null ||
        typeof cleanedValue === "string" ||
        typeof cleanedValue === "boolean" ||
        Number.isFinite(cleanedValue)
      )
        return [key, cleanedValue as string]
      return [key, typeof cleanedValue === "number" ? String(cleanedValue) : JSON.stringify(cleanedValue)]
    }),
  )
}

/** Own keys that concern a model's tokens and are no secrets. */
const harmless: ReadonlySet<string> = new Set(["tokenWeights"])

function secrecyOfKey(name: string): Secrecy {
  return harmless.has(name) ? undefined : secrecyOf(name)
}

/** Redacts a number only if the name is unambiguous: `maxCompletionTokens` contains "tokens", too. */
function withoutSecrets(value: unknown, secrecy: Secrecy, list: readonly unknown[] = [], at = 0): unknown {
  if (typeof value === "number") return secrecy === "strong" ? redacted : value
  if (typeof value === "string")
    return secrecy && value !== "" ? redacted : ofText(value, list.slice(Math.max(at - lookedBack, 0), at))
  if (Array.isArray(value))
    return value.map((one, at) => withoutSecrets(one, secrecy ?? pairedWith(value, at), value, at))
  if (!isObject(value)) return value
  const { name = value.key } = value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      const own = key === "value" && typeof name === "string" ? secrecyOf(name) : secrecyOfKey(key)
      return [key, withoutSecrets(inner, secrecy ?? own)]
    }),
  )
}

/** Secrecy of the value in a pair of name and value, [x-api-key, value]. */
function pairedWith(list: readonly unknown[], at: number): Secrecy {
  const [name] = list
  if (at !== 1 || list.length !== 2 || typeof name !== "string") return undefined
  return secrecyOf(name) === "strong" ? "strong" : undefined
}

/** Checks the values inside JSON text, which stays unchanged if there is nothing to redact. */
function ofText(text: string, before: readonly unknown[]): string {
  return jsonWithoutSecrets(text) ?? argumentWithoutSecrets(text, before)
}

/** Undefined for a text that is no object or list, or is nested too deep. */
function jsonWithoutSecrets(text: string): string | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined
  try {
    const parsed: unknown = JSON.parse(text)
    const cleaned = JSON.stringify(withoutSecrets(parsed, undefined))
    return cleaned === JSON.stringify(parsed) ? text : cleaned
  } catch {
    return undefined
  }
}
