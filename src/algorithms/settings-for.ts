import type { Algorithm } from "./algorithm.ts"

/** Settings that select an algorithm, each in the form of `--set`. */
export function settingsOf({ set = {} }: Algorithm): string[] {
  return Object.entries(set).map(([key, value]) => `${key}=${Array.isArray(value) ? `[${value.join(",")}]` : value}`)
}

/** Settings and code that select an algorithm; empty for an algorithm that is not available. */
export function settingsFor(algorithm: Algorithm): string[] {
  return [...settingsOf(algorithm), ...(algorithm.code === undefined ? [] : [algorithm.code])]
}
