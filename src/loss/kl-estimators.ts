import type { KlEstimator } from "../engine/engine.ts"
import { clamp, maxLogRatio } from "./policy-ratio.ts"

// Estimates of KL(policy ‖ reference) from one token, with d = log p_ref - log p (Schulman, "Approximating KL divergence", 2020).
// core/kernels/clipped_surrogate.h computes the same.

/** Upper bound of k3, with a gradient of 0 above. */
const maxK3 = 10

interface Estimate {
  value(d: number): number
  /** Derivative with respect to log p. */
  gradient(d: number): number
}

const k1: Estimate = { value: (d) => -d, gradient: () => 1 }

const k2: Estimate = { value: (d) => (d * d) / 2, gradient: (d) => -d }

/** k3 without the bound: e^d - d - 1. */
function freeK3(d: number): number {
  const bounded = clamp(d, -maxLogRatio, maxLogRatio)
  return Math.expm1(bounded) - bounded
}

const k3: Estimate = {
  value: (d) => Math.min(freeK3(d), maxK3),
  gradient: (d) => (freeK3(d) > maxK3 ? 0 : -Math.expm1(d)),
}

/**
 * KL estimators by name. Names with a plus combine the value of k1 or k3 with the gradient of k2. The expectation of the latter is the
 * gradient of the KL; the expectations of the derivatives of k1 and k3 are not.
 */
export const klEstimators: Readonly<Record<KlEstimator, Estimate>> = {
  k1,
  k2,
  k3,
  abs: { value: Math.abs, gradient: (d) => -Math.sign(d) },
  "k1+": { value: k1.value, gradient: k2.gradient },
  "k3+": { value: k3.value, gradient: k2.gradient },
}
