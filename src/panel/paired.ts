import { checkList } from "../options/arguments.ts"
import { GigpoError } from "../util/errors.ts"
import { tQuantile } from "./student-t.ts"

/** A mean with its 95 % interval. */
export interface MeanInterval {
  readonly mean: number
  /** -Infinity where one value alone says nothing of the spread. */
  readonly low: number
  /** Infinity where one value alone says nothing of the spread. */
  readonly high: number
  /** Values in the mean. */
  readonly count: number
}

/**
 * The mean of what was measured several times, with its 95 % interval by Student's t with n - 1 degrees of freedom. Assumed: the values
 * are drawn independently, and their mean is near to normal, which it is for values that are, or for many.
 *
 * @param values at least one, all finite
 * @throws GigpoError `BAD_ARGUMENT`
 */
export function tInterval(values: ArrayLike<number>): MeanInterval {
  checkValues("tInterval: values", values)
  const count = values.length
  const all = Array.from(values)
  const mean = all.reduce((sum, value) => sum + value, 0) / count
  if (count === 1) return { mean, low: Number.NEGATIVE_INFINITY, high: Number.POSITIVE_INFINITY, count }
  const variance = all.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (count - 1)
  const half = tQuantile(0.975, count - 1) * Math.sqrt(variance / count)
  return { mean, low: mean - half, high: mean + half, count }
}

/**
 * The mean of the differences a - b over pairs, say of two methods over tasks or over seeds, with its interval as `tInterval`'s. What
 * is hard in a pair is so for both, so it leaves the difference, and the interval is as a rule narrower than that of two means.
 *
 * @param a [pairs], finite
 * @param b [pairs], in the order of `a`
 * @throws GigpoError `BAD_ARGUMENT`
 */
export function pairedInterval(a: ArrayLike<number>, b: ArrayLike<number>): MeanInterval {
  checkValues("pairedInterval: a", a)
  checkValues("pairedInterval: b", b)
  if (a.length !== b.length) {
    throw new GigpoError("BAD_ARGUMENT", `pairedInterval: a has ${a.length} values and b ${b.length}; give pairs.`)
  }
  return tInterval(Array.from(a, (value, pair) => value - b[pair]!))
}

function checkValues(name: string, values: ArrayLike<number>): void {
  checkList(name, values)
  if (values.length === 0 || !Array.from(values).every(Number.isFinite)) {
    throw new GigpoError("BAD_ARGUMENT", `${name} must be finite numbers, at least one.`)
  }
}
