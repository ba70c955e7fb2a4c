import { GigpoError } from "../util/errors.ts"

/**
 * Selects points that are far apart by farthest-point sampling (StraTA, arXiv 2605.06642, which selects strategies this way). Each further
 * point is the one whose largest cosine with the selected points is smallest. Ties go to the earlier point.
 *
 * @param points nonzero vectors of equal length, [points]
 * @param count number of points to select, from 1 to the number of points
 * @param first index of the first selected point
 * @returns indices in the order of selection
 * @throws BAD_ARGUMENT for an invalid count or first index
 */
export function farthestPoints(points: readonly ArrayLike<number>[], count: number, first = 0): number[] {
  const isIndex = Number.isInteger(first) && first >= 0 && first < points.length
  if (!isIndex || !(Number.isInteger(count) && count >= 1 && count <= points.length))
    throw new GigpoError(
      "BAD_ARGUMENT",
      `farthestPoints: cannot pick ${count} of ${points.length} points from point ${first} on; give 1 to ${points.length}, and an index.`,
    )
  const picked = [first]
  const nearest = points.map((point) => cosine(point, points[first]!))
  while (picked.length < count) {
    let best = -1
    for (const [index, likeness] of nearest.entries())
      if (!picked.includes(index) && (best < 0 || likeness < nearest[best]!)) best = index
    picked.push(best)
    for (const [index, point] of points.entries())
      nearest[index] = Math.max(nearest[index]!, cosine(point, points[best]!))
  }
  return picked
}

function cosine(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let [product, ofA, ofB] = [0, 0, 0]
  for (let i = 0; i < a.length; i++) {
    product += a[i]! * b[i]!
    ofA += a[i]! ** 2
    ofB += b[i]! ** 2
  }
  return product / Math.sqrt(ofA * ofB)
}
