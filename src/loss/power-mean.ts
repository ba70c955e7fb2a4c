/** From here to 0 it is its limit, the geometric mean. */
const smallestP = 1e-6

export interface PowerMean {
  readonly logMean: number
  /** Its derivatives by the logarithms, which sum to 1: w e^(p l) over their sum. */
  readonly parts: Float64Array
  /** The sum of the weights; where it is 0, so is all else. */
  readonly weight: number
}

/**
 * The power mean of order p (Hölder), of logarithms l and weights w of at least 0, in logarithms so that nothing overflows:
 *
 *     log M_p = (log Σ w e^(p l) - log Σ w) / p;  log M_0 = Σ w l / Σ w
 */
export function powerMean(logs: Float64Array, weights: Float64Array, p: number): PowerMean {
  const weight = sum(weights)
  if (weight === 0) return { logMean: 0, parts: weights, weight }
  const isGeometric = Math.abs(p) < smallestP
  const exponents = logs.map((log) => (isGeometric ? 0 : p * log))
  // Of what weighs nothing there is no largest: all the rest could vanish beside it.
  const largest = exponents.reduce((a, b, i) => (weights[i] === 0 ? a : Math.max(a, b)), Number.NEGATIVE_INFINITY)
  const terms = exponents.map((exponent, i) => (weights[i] === 0 ? 0 : weights[i]! * Math.exp(exponent - largest)))
  const total = sum(terms)
  const parts = terms.map((term) => term / total)
  const logMean = isGeometric ? sum(logs.map((log, i) => log * parts[i]!)) : (largest + Math.log(total / weight)) / p
  return { logMean, parts, weight }
}

function sum(values: Float64Array): number {
  return values.reduce((total, value) => total + value, 0)
}
