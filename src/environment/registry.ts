import { GigpoError } from "../errors.ts"
import type { Environment } from "./environment.ts"
import { type SokobanOptions, sokoban } from "./sokoban/sokoban.ts"

// One line an environment. Every factory checks its own options, so what a configuration file says may go in unread.
const factories: Readonly<Record<string, (options?: object) => Environment>> = {
  sokoban: (options) => sokoban(options as SokobanOptions),
}

/** The names that `openEnvironment` knows. */
export const environmentNames: readonly string[] = Object.keys(factories)

/** Makes a built-in environment. Throws `BAD_CONFIG` for an unknown name or bad options. */
export function openEnvironment(name: string, options?: object): Environment {
  if (!Object.hasOwn(factories, name)) {
    throw new GigpoError(
      "BAD_CONFIG",
      `There is no environment "${name}"; did you mean "${nearest(name, environmentNames)}"? ` +
        `Known: ${environmentNames.join(", ")}.`,
    )
  }
  return factories[name]!(options)
}

function nearest(word: string, candidates: readonly string[]): string {
  const distances = candidates.map((candidate) => editDistance(word.toLowerCase(), candidate))
  return candidates[distances.indexOf(Math.min(...distances))]!
}

/** Levenshtein distance, one row of the table at a time. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1))
    }
    row = next
  }
  return row[b.length]!
}
