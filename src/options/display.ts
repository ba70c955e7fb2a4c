import { inspect } from "node:util"

/** A value in a message. Never throws. */
export function display(value: unknown): string {
  const text = written(value)
  return text.length > 100 ? `${text.slice(0, 100)}…` : text
}

/** ", not …", after what something of one's own must be. Of an object JSON would show no function, which says nothing. */
export function notThis(value: unknown): string {
  const isShown = value === null || (typeof value !== "object" && typeof value !== "function")
  return isShown ? `, not ${display(value)}` : ""
}

/** With a full stop, where it does not end in a question. */
export function ended(sentence: string): string {
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`
}

function written(value: unknown): string {
  if (value === null) return "empty"
  if (typeof value === "number") return String(value)
  try {
    return JSON.stringify(value) ?? String(value)
  } catch {
    // Big integers and circles, which JSON does not know.
    return inspect(value, { depth: 1, breakLength: Number.POSITIVE_INFINITY })
  }
}
