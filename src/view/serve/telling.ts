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
