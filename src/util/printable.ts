import { visible } from "./visible.ts"

/** Maximum depth of causes; a chain may be circular. */
const deepest = 16

/**
 * Makes an error safe to print by Node.js: returns the error itself, or a copy in which control characters of messages
 * and stacks, including those of causes, are escaped. Other values are returned unchanged: Node.js escapes them.
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
