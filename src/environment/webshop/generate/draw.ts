import type { Random } from "../../../util/random.ts"

export function choose<T>(items: readonly T[], random: Random): T {
  return items[random.below(items.length)]!
}

/** Draws `count` different items and returns them in the order of the list. */
export function chooseSome<T>(items: readonly T[], count: number, random: Random): T[] {
  const chosen = new Set<number>()
  while (chosen.size < Math.min(count, items.length)) chosen.add(random.below(items.length))
  return items.filter((_, i) => chosen.has(i))
}

export function capitalise(words: string): string {
  return words.replace(/\b[a-z]/g, (letter) => letter.toUpperCase())
}
