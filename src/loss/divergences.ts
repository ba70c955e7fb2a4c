import type { TokenColumn } from "../engine/sequence.ts"

// Divergence between the policy p and a teacher q at one position, from the probabilities of the teacher's most likely tokens. All
// other tokens are merged into one outcome.

/** Minimum probability of the merged outcome: rounding could make it 0. */
const leastRest = 1e-6

/** Returns the term of one outcome in a divergence D, and p ∂D/∂p. */
export type Divergence = (p: number, q: number) => readonly [value: number, slope: number]

/** KL(q ‖ p) = Σ q log(q / p), the mass-covering direction. */
export const forwardKl: Divergence = (p, q) => [q === 0 ? 0 : q * Math.log(q / p), -q]

/** β KL(q ‖ m) + (1 - β) KL(p ‖ m) with m = β q + (1 - β) p: at β = ½ the Jensen-Shannon divergence. */
export function jensenShannon(beta: number): Divergence {
  return (p, q) => {
    const m = beta * q + (1 - beta) * p
    const [ofTeacher, ofPolicy] = [q, p].map((x) => (x === 0 ? 0 : x * Math.log(x / m))) as [number, number]
    return [beta * ofTeacher + (1 - beta) * ofPolicy, (1 - beta) * ofPolicy]
  }
}

/**
 * Returns D at one position. Writes the derivatives with respect to the log-probabilities of the known tokens into `slopes`:
 *
 *     D = Σ_i d(p_i, q_i) + d(1 - Σ p_i, 1 - Σ q_i);  ∂D / ∂ log p_i = p_i (d'(p_i) - d'(1 - Σ p_i))
 *
 * @param from - offset of the position in the columns and in `slopes`.
 */
export function divergenceAt(
  of: Divergence,
  policy: TokenColumn,
  teacher: TokenColumn,
  from: number,
  count: number,
  slopes: Float64Array,
): number {
  let [p, q, value] = [0, 0, 0]
  for (let i = from; i < from + count; i++) {
    const [own, other] = [Math.exp(policy[i]!), Math.exp(teacher[i]!)]
    const [part, slope] = of(own, other)
    p += own
    q += other
    value += part
    slopes[i] = slope
  }
  const left = Math.max(1 - p, leastRest)
  const [rest, slopeOfRest] = of(left, Math.max(1 - q, leastRest))
  for (let i = from; i < from + count; i++) slopes[i]! -= (Math.exp(policy[i]!) * slopeOfRest) / left
  return value + rest
}
