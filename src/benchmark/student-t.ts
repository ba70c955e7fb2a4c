import { GigpoError } from "../util/errors.ts"
import { logBeta, regularizedBeta } from "./beta.ts"

/**
 * Returns the probability that Student's t is at most `t` (Student, Biometrika 6, 1908; by the incomplete beta function, DLMF 8.17). The
 * absolute error is below 1e-12.
 *
 * @param freedom degrees of freedom, above 0, at most 1e6
 * @throws GigpoError `BAD_ARGUMENT` for an invalid argument
 */
export function tDistribution(t: number, freedom: number): number {
  checkFreedom(freedom)
  if (Number.isNaN(t)) throw new GigpoError("BAD_ARGUMENT", "tDistribution: t must be a number.")
  if (Math.abs(t) === Number.POSITIVE_INFINITY) return t < 0 ? 0 : 1
  const square = t * t
  const within = regularizedBeta(square / (freedom + square), 0.5, freedom / 2, freedom / (freedom + square))
  return 0.5 + (Math.sign(t) * within) / 2
}

/**
 * Returns the quantile of Student's t distribution, the inverse of `tDistribution`.
 *
 * @param probability above 0 and below 1
 * @param freedom degrees of freedom, above 0, at most 1e6
 * @throws GigpoError `BAD_ARGUMENT` for an invalid argument
 */
export function tQuantile(probability: number, freedom: number): number {
  checkFreedom(freedom)
  if (!(probability > 0 && probability < 1)) {
    throw new GigpoError("BAD_ARGUMENT", "tQuantile: the probability must lie between 0 and 1.")
  }
  if (probability < 0.5) return -tQuantile(1 - probability, freedom)
  // Newton's method from 0 never overshoots the solution, because the distribution is concave to the right of 0.
  const density = (t: number) =>
    Math.exp((-(freedom + 1) / 2) * Math.log1p((t * t) / freedom) - logBeta(0.5, freedom / 2)) / Math.sqrt(freedom)
  for (let t = 0; ; ) {
    const next = t + (probability - tDistribution(t, freedom)) / density(t)
    if (!(next > t * (1 + 1e-15))) return t
    t = next
  }
}

function checkFreedom(freedom: number): void {
  if (!(freedom > 0 && freedom <= 1e6)) {
    throw new GigpoError("BAD_ARGUMENT", "Student's t needs degrees of freedom above 0 and at most 1e6.")
  }
}
