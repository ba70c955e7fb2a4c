/** Magnitude of p below which the power mean is computed as its limit, the geometric mean. */
const smallestP = 1e-6

export interface PowerMean {
  readonly logMean: number
  /** Derivatives of `logMean` with respect to the logarithms: w e^(p l), divided by the sum of these terms. */
  readonly parts: Float64Array
  /** Sum of the weights. Where it is 0, `logMean` and `parts` are 0. */
  readonly weight: number
}

/**
 * Returns the power mean (Hölder mean) with exponent p of values e^l with weights w of at least 0. The computation is in logarithms, so that
 * nothing overflows:
 *
 *     log M_p = (log Σ w e^(p l) - log Σ w) / p;  log M_0 = Σ w l / Σ w
 */
export function powerMean(logs: Float64Array, weights: Float64Array, p: number): PowerMean {
  const weight = sum(weights)
  if (weight === 0) return { logMean: 0, parts: weights, weight }
  const isGeometric = Math.abs(p) < smallestP
  const exponents = logs.map((log) => (isGeometric ? 0 : p * log))
  // A large exponent of weight 0 must not be the reference of the others: they could all underflow.
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
