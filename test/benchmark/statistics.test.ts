import { expect, it } from "vitest"
import { regularizedBeta } from "../../src/benchmark/beta.ts"
import { mcnemarTest } from "../../src/benchmark/mcnemar.ts"
import { pairedInterval, tInterval } from "../../src/benchmark/paired.ts"
import { tDistribution, tQuantile } from "../../src/benchmark/student-t.ts"

// Values of mpmath 1.3 with 40 digits (betainc, findroot), which agree with scipy 1.16 and with the printed tables, as the nearest double.
it.each([
  [0.975, 1, 12.706204736174705],
  [0.975, 2, 4.302652729749464],
  [0.975, 4, 2.7764451051977943],
  [0.975, 9, 2.2621571627982053],
  [0.975, 133, 1.9779612641677262],
  [0.975, 511, 1.964617222330404],
  [0.975, 100_000, 1.9599877075346095],
  [0.6, 3, 0.2766706623326899],
  [0.9995, 5, 6.86882662588111],
  [0.999, 1, 318.30883898555044],
  [0.75, 0.5, 1.5537739740300374],
])("t stays below its quantile %d with %d degrees of freedom", (probability, freedom, t) => {
  expect(Math.abs(tQuantile(probability, freedom) / t - 1)).toBeLessThan(1e-10)
  expect(tQuantile(1 - probability, freedom)).toBeCloseTo(-tQuantile(probability, freedom), 8)
})

it.each([
  [0.1, 1, 0.5317255174305535],
  [1, 1, 0.75],
  [-2, 3, 0.0696629842794216],
  [2.5, 7, 0.9795038907071235],
  [6, 10, 0.9999339455698226],
  [0.001, 200, 0.5003984438494306],
  [1.96, 1000, 0.9748634075221256],
  [-40, 2, 0.0003122073360923703],
  [0, 5, 0.5],
  [Number.POSITIVE_INFINITY, 5, 1],
  [Number.NEGATIVE_INFINITY, 5, 0],
])("t is at most %d with %d degrees of freedom", (t, freedom, probability) => {
  expect(Math.abs(tDistribution(t, freedom) - probability)).toBeLessThan(1e-12)
})

it.each([
  [0, 0, 1],
  [0, 5, 0.0625],
  [9, 1, 0.021484375],
  [8, 21, 0.0241195447742939],
  [59, 6, 4.964650327128617e-12],
  [121, 59, 0.000004434449263755176],
  [300, 240, 0.01105048108193001],
  [2, 3, 1],
  [4, 4, 1],
  [700, 500, 8.535366081034334e-9],
])("of pairs that differ, %d speak for one and %d for the other", (first, second, p) => {
  expect(Math.abs(mcnemarTest(first, second) / p - 1)).toBeLessThan(1e-10)
  expect(mcnemarTest(second, first)).toBe(mcnemarTest(first, second))
})

it("the incomplete beta function is the sum of binomials, and has its ends", () => {
  // I_x(2, 3) = P(Bin(4, x) >= 2), a polynomial.
  for (const x of [0.1, 0.4, 0.7, 0.95]) {
    const exact = 6 * x ** 2 * (1 - x) ** 2 + 4 * x ** 3 * (1 - x) + x ** 4
    expect(regularizedBeta(x, 2, 3)).toBeCloseTo(exact, 13)
  }
  expect([regularizedBeta(0, 2, 3), regularizedBeta(1, 2, 3)]).toEqual([0, 1])
})

it("means and paired differences have the intervals of scipy's ttest_1samp and ttest_rel", () => {
  const [a, b] = [
    [59.8, 55.1, 57.8, 53.1],
    [53.9, 55.9, 48, 47.3],
  ]
  const one = tInterval(a)
  expect([one.mean, one.low, one.high]).toEqual(
    [56.45, 51.757465206663326, 61.142534793336665].map((value) => expect.closeTo(value, 10)),
  )
  const paired = pairedInterval(a, Float64Array.from(b))
  expect([paired.mean, paired.low, paired.high]).toEqual(
    [5.175, -1.8220106707701236, 12.172010670770124].map((value) => expect.closeTo(value, 10)),
  )
  expect(paired.count).toBe(4)
  expect(tInterval([0, 0, 0])).toEqual({ mean: 0, low: 0, high: 0, count: 3 })
  expect(tInterval([7])).toEqual({ mean: 7, low: Number.NEGATIVE_INFINITY, high: Number.POSITIVE_INFINITY, count: 1 })
})

it("an interval holds the mean as often as it says", () => {
  // Sums of twelve uniform numbers, from a plain linear congruence: near to normal, of mean 0.
  let state = 1
  const uniform = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
  const normal = () => Array.from({ length: 12 }, uniform).reduce((sum, value) => sum + value, -6)
  let held = 0
  for (let i = 0; i < 2000; i++) {
    const { low, high } = tInterval(Array.from({ length: 5 }, normal))
    if (low <= 0 && 0 <= high) held++
  }
  expect(held / 2000).toBeGreaterThan(0.935)
  expect(held / 2000).toBeLessThan(0.965)
})

it("rejects what is no number, no pair, and no probability", () => {
  const anything = (value: unknown) => value as never
  const wrong = [
    () => tInterval([]),
    () => tInterval([1, Number.NaN]),
    () => tInterval(anything(undefined)),
    () => tInterval(anything(["1"])),
    () => pairedInterval([1, 2], [1]),
    () => tQuantile(0, 3),
    () => tQuantile(1, 3),
    () => tQuantile(0.5, 0),
    () => tQuantile(Number.NaN, 3),
    () => tDistribution(Number.NaN, 3),
    () => tDistribution(1, 2e6),
    () => mcnemarTest(-1, 2),
    () => mcnemarTest(0.5, 2),
  ]
  for (const call of wrong) expect(call).toThrow(expect.objectContaining({ code: "BAD_ARGUMENT" }))
})
