import type { Column } from "../engine/rows.ts"

// How far the policy p is from a teacher q at one place, of whose tokens the most likely are known: these, and all others as one.

/** What all other tokens have at least, so that rounding never leaves them with nothing. */
const leastRest = 1e-6

/** The part of one outcome in D, and p ∂D/∂p. */
export type Divergence = (p: number, q: number) => readonly [value: number, slope: number]

/** KL(q ‖ p) = Σ q log(q / p): the policy is to cover all that the teacher would say. */
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
 * D at one place, and its derivatives by the log-probabilities of the known tokens, which are put into `slopes`:
 *
 *     D = Σ_i d(p_i, q_i) + d(1 - Σ p_i, 1 - Σ q_i);  ∂D / ∂ log p_i = p_i (d'(p_i) - d'(1 - Σ p_i))
 *
 * @param from where the place's numbers begin, in the columns and in `slopes`
 */
export function divergenceAt(
  of: Divergence,
  policy: Column,
  teacher: Column,
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
