import { inspect } from "node:util"

/** Text of a value for a message, at most 100 characters and an ellipsis. Never throws. */
export function display(value: unknown): string {
  const text = written(value)
  return text.length > 100 ? `${text.slice(0, 100)}…` : text
}

/** Suffix ", not …" of a message about a custom value. Empty for objects and functions: JSON leaves out functions, so it would not help. */
export function notThis(value: unknown): string {
  const isShown = value === null || (typeof value !== "object" && typeof value !== "function")
  return isShown ? `, not ${display(value)}` : ""
}

/** Sentence with a full stop, unless it ends with punctuation already. */
export function ended(sentence: string): string {
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`
}

function written(value: unknown): string {
  if (value === null) return "empty"
  if (typeof value === "number") return String(value)
  try {
    return JSON.stringify(value) ?? String(value)
  } catch {
    // JSON cannot write bigints and circular references.
    return inspect(value, { depth: 1, breakLength: Number.POSITIVE_INFINITY })
  }
}
