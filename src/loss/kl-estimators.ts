import type { KlEstimator } from "../engine/engine.ts"
import { clamp, maxLogRatio } from "./policy-ratio.ts"

// Estimates of KL(policy ‖ reference) from one token, of d = log p_ref - log p (Schulman, "Approximating KL divergence", 2020). The
// twin of core/kernels/clipped_surrogate.h.

/** What k3 is held to, with a gradient of 0 above. */
const maxK3 = 10

interface Estimate {
  value(d: number): number
  /** By log p. */
  gradient(d: number): number
}

const k1: Estimate = { value: (d) => -d, gradient: () => 1 }

const k2: Estimate = { value: (d) => (d * d) / 2, gradient: (d) => -d }

/** e^d - d - 1 */
function freeK3(d: number): number {
  const bounded = clamp(d, -maxLogRatio, maxLogRatio)
  return Math.expm1(bounded) - bounded
}

const k3: Estimate = {
  value: (d) => Math.min(freeK3(d), maxK3),
  gradient: (d) => (freeK3(d) > maxK3 ? 0 : -Math.expm1(d)),
}

/**
 * With a plus the value is that one's and the gradient k2's, whose expectation is the gradient of the KL, as that of k1's or k3's
 * own derivative is not.
 */
export const klEstimators: Readonly<Record<KlEstimator, Estimate>> = {
  k1,
  k2,
  k3,
  abs: { value: Math.abs, gradient: (d) => -Math.sign(d) },
  "k1+": { value: k1.value, gradient: k2.gradient },
  "k3+": { value: k3.value, gradient: k2.gradient },
}
