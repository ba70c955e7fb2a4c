import type { RecordedGroup } from "../data/recorded.ts"

/**
 * Iterations in order of information about a run: the first, the last, the best, and then those in the middle of the widest gap, so that
 * every prefix is spread evenly.
 *
 * @param iterations - ascending
 */
export function tellingIterations(iterations: readonly number[], best?: number): readonly number[] {
  if (iterations.length === 0) return []
  const last = iterations.length - 1
  const places = new Set([0, last])
  if (best !== undefined)
    places.add(
      Math.max(
        iterations.findLastIndex((one) => one <= best),
        0,
      ),
    )
  let gaps = [...places].sort((a, b) => a - b).map((from, at, all) => [from, all[at + 1] ?? from] as const)
  while (gaps.length > 0) {
    gaps = gaps.filter(([from, to]) => to - from > 1).sort((a, b) => b[1] - b[0] - (a[1] - a[0]))
    gaps = gaps.flatMap(([from, to]) => {
      const middle = (from + to) >> 1
      places.add(middle)
      return [[from, middle] as const, [middle, to] as const]
    })
  }
  return [...places].map((place) => iterations[place]!)
}

/** Group with its numbers rounded to four digits, which is sufficient for display and takes half the space. */
export function inFourDigits(group: RecordedGroup): RecordedGroup {
  const short = (value: number) => Number(value.toPrecision(4))
  const all = (values: readonly number[]) => values.map(short)
  const episodes = group.episodes.map((episode) => ({
    ...episode,
    steps: episode.steps.map((step) => ({
      ...step,
      logProbs: all(step.logProbs),
      ...(step.entropies && { entropies: all(step.entropies) }),
      ...(step.advantage !== undefined && {
        advantage: typeof step.advantage === "number" ? short(step.advantage) : all(step.advantage),
      }),
    })),
  }))
  return { ...group, episodes }
}
