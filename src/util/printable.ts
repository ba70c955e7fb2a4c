import { visible } from "./visible.ts"

/** Causes of causes that are looked at; a chain may lead back to its start. */
const deepest = 16

/**
 * Error that Node.js can print without harm where it is not caught: the error itself, or one in its place whose message and stack, and those
 * of its causes, show as escapes what a terminal would obey. Anything else as it is: Node.js escapes it.
 */
export function printable(cause: unknown, depth = 0): unknown {
  if (!(cause instanceof Error) || depth === deepest) return cause
  const { message, stack } = cause
  const shown = {
    message: visible(String(message)),
    stack: stack && visible(String(stack)),
    cause: printable(cause.cause, depth + 1),
  }
  if (shown.message === message && shown.stack === stack && shown.cause === cause.cause) return cause
  const own = Object.entries(shown).filter(([key, value]) => value !== cause[key as keyof Error])
  return Object.create(
    cause,
    Object.fromEntries(own.map(([key, value]) => [key, { value, configurable: true, writable: true }])),
  )
}
