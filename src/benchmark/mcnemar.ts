import { GigpoError } from "../util/errors.ts"
import { regularizedBeta } from "./beta.ts"

/**
 * Returns the p-value of McNemar's exact test (McNemar, Psychometrika 12, 1947), which is the sign test. Under the null hypothesis, each
 * pair with a difference is equally likely to favor either side. Pairs must be independent.
 *
 * @param first number of pairs that favor the first side, an integer
 * @param second number of pairs that favor the second side, an integer
 * @returns two-sided p: twice the smaller tail of the binomial distribution, at most 1
 * @throws GigpoError `BAD_ARGUMENT` for an invalid number
 */
export function mcnemarTest(first: number, second: number): number {
  if (![first, second].every((count) => Number.isSafeInteger(count) && count >= 0)) {
    throw new GigpoError("BAD_ARGUMENT", "mcnemarTest: both must be numbers of pairs, 0 or more.")
  }
  const [fewer, more] = [Math.min(first, second), Math.max(first, second)]
  // Sum of C(n, i) / 2^n for i up to `fewer`: DLMF 8.17.5.
  return fewer === more ? 1 : Math.min(1, 2 * regularizedBeta(0.5, more, fewer + 1))
}
