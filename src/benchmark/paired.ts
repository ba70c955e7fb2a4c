import { checkList } from "../options/arguments.ts"
import { GigpoError } from "../util/errors.ts"
import { tQuantile } from "./student-t.ts"

/** Mean with a 95 % interval. */
export interface MeanInterval {
  /** Mean of the values. */
  readonly mean: number
  /** Lower end of the interval; -Infinity for a single value. */
  readonly low: number
  /** Upper end of the interval; Infinity for a single value. */
  readonly high: number
  /** Number of values. */
  readonly count: number
}

/**
 * Returns the mean of values with a 95 % interval by Student's t with n - 1 degrees of freedom. Assumes that the values are independent and that
 * their mean is approximately normal, as for normal or many values.
 *
 * @param values - at least one value, all finite.
 * @throws GigpoError `BAD_ARGUMENT` for no values or values that are not finite.
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
 * Returns the mean of the differences a - b over pairs, for example of two methods over tasks or seeds, with the interval of `tInterval`. The
 * difficulty of a pair cancels in the difference, so the interval is usually narrower than that of the difference of two independent means.
 *
 * @param a - finite values, [pairs].
 * @param b - finite values in the order of `a`, [pairs].
 * @throws GigpoError `BAD_ARGUMENT` for different lengths, no values or values that are not finite.
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
