import { GigpoError } from "../util/errors.ts"
import { regularizedBeta } from "./beta.ts"

/**
 * McNemar's exact test (McNemar, Psychometrika 12, 1947), which is the sign test: of the pairs whose two sides differ, each is as
 * likely to speak for the one as for the other if there is nothing between them. Pairs must be independent of one another.
 *
 * @param first pairs that speak for the one side, a whole number
 * @param second pairs that speak for the other
 * @returns two-sided p: twice the smaller tail of the binomial, at most 1
 * @throws GigpoError `BAD_ARGUMENT`
 */
export function mcnemarTest(first: number, second: number): number {
  if (![first, second].every((count) => Number.isSafeInteger(count) && count >= 0)) {
    throw new GigpoError("BAD_ARGUMENT", "mcnemarTest: both must be numbers of pairs, 0 or more.")
  }
  const [fewer, more] = [Math.min(first, second), Math.max(first, second)]
  // Sum of C(n, i) / 2^n for i up to `fewer`: DLMF 8.17.5.
  return fewer === more ? 1 : Math.min(1, 2 * regularizedBeta(0.5, more, fewer + 1))
}
