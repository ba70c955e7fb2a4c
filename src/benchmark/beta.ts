/**
 * Returns the regularized incomplete beta function I_x(a, b), the basis of Student's t distribution and of binomial tails. The absolute
 * error is below 1e-12 for a and b up to some thousands. Computed by the continued fraction of DLMF 8.17.22 (https://dlmf.nist.gov/8.17)
 * with Lentz's method as modified by Thompson and Barnett (J. Comput. Phys. 64, 1986).
 *
 * @param x from 0 to 1
 * @param y 1 - x, for callers that know it without cancellation error
 * @param a above 0
 * @param b above 0
 */
export function regularizedBeta(x: number, a: number, b: number, y = 1 - x): number {
  if (x <= 0 || y <= 0) return x <= 0 ? 0 : 1
  // The fraction converges fast for x up to this bound. DLMF 8.17.4 is the symmetry that maps the other side to it.
  if (x > (a + 1) / (a + b + 2)) return 1 - regularizedBeta(y, b, a, x)
  return Math.exp(a * Math.log(x) + b * Math.log(y) - logBeta(a, b)) / (a * fraction(x, a, b))
}

/** ln B(a, b). */
export function logBeta(a: number, b: number): number {
  return logGamma(a) + logGamma(b) - logGamma(a + b)
}

/** Continued fraction 1 + d1 / (1 + d2 / (1 + ..)). */
function fraction(x: number, a: number, b: number): number {
  const notZero = (value: number) => (Math.abs(value) < 1e-300 ? 1e-300 : value)
  let [value, numerator, denominator] = [1, 1, 0]
  for (let n = 1; ; n++) {
    const m = n >> 1
    const d =
      n % 2 === 0
        ? (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m))
        : (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1))
    numerator = notZero(1 + d / numerator)
    denominator = 1 / notZero(1 + d * denominator)
    const change = numerator * denominator
    value *= change
    if (Math.abs(change - 1) < 1e-15 || n === maxTerms) return value
  }
}

/** Maximum number of terms. A small multiple of the square root of a + b is needed, so this suffices beyond 1e6. */
const maxTerms = 10_000

/** ln Γ by Stirling's series (DLMF 5.11.1), used from 10 on, where the next term is below 1e-17. */
function logGamma(value: number): number {
  let [z, shift] = [value, 0]
  for (; z < 10; z++) shift += Math.log(z)
  const inverse = 1 / (z * z)
  const series = [1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400]
  const tail = series.reduceRight((sum, coefficient) => sum * inverse + coefficient, 0) / z
  return (z - 0.5) * Math.log(z) - z + 0.5 * Math.log(2 * Math.PI) + tail - shift
}
