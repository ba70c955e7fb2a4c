import type { ClippedSurrogate } from "../engine/engine.ts"

/** Beyond this k3 is constant: a policy far from the reference gives large numbers, never infinite ones. */
const maxLogRatio = 10

/** An estimate of KL(policy ‖ reference) from one token, of d = log p_ref - log p, and its derivative by log p. */
interface KlEstimator {
  value(d: number): number
  gradient(d: number): number
}

/** -d, d²/2, e^d - d - 1 (Schulman, "Approximating KL divergence", 2020). */
export const klEstimators: Readonly<Record<ClippedSurrogate["klEstimator"], KlEstimator>> = {
  k1: { value: (d) => -d, gradient: () => 1 },
  k2: { value: (d) => (d * d) / 2, gradient: (d) => -d },
  k3: {
    value(d) {
      const bounded = Math.min(Math.max(d, -maxLogRatio), maxLogRatio)
      return Math.expm1(bounded) - bounded
    },
    gradient: (d) => (Math.abs(d) > maxLogRatio ? 0 : -Math.expm1(d)),
  },
}
