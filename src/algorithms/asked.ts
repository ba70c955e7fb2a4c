import type { Algorithm } from "./algorithm.ts"

/** The settings that ask for it, as `--set` takes them, one each. */
export function settingsOf({ set = {} }: Algorithm): string[] {
  return Object.entries(set).map(([key, value]) => `${key}=${Array.isArray(value) ? `[${value.join(",")}]` : value}`)
}

/** How it is asked for: settings, and what is handed in besides; nothing where it is absent. */
export function askedFor(algorithm: Algorithm): string[] {
  return [...settingsOf(algorithm), ...(algorithm.code === undefined ? [] : [algorithm.code])]
}
