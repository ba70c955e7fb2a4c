import { offPolicyTokens } from "./off-policy-tokens.ts"
import type { LossInput, LossOutput, TokenLoss } from "./token-loss.ts"

/** Weights of the two terms. */
export interface ImitationTerms {
  /** Factor of the policy loss. */
  readonly policy: number
  /** Factor of the imitation of off-policy tokens. */
  readonly imitation: number
  /** Whether an imitated token has the weight p (1 - p), a constant; else 1. */
  readonly phi: boolean
}

/**
 * Adds the imitation of off-policy tokens to a policy loss of the others:
 *
 *     policy · policy loss + imitation · mean of -φ log p over the off-policy tokens
 *
 * Each kind of tokens has a mean of its own: the shares of the policy's tokens are scaled so that they have the sum of all shares. A batch
 * with one kind has only its term, with its weight. Also reports "policy/off-policy-fraction" and "loss/cross-entropy", the mean.
 */
export function withImitation(
  loss: TokenLoss,
  input: LossInput,
  { policy, imitation: weight, phi: isWeighted }: ImitationTerms,
): LossOutput {
  const { tokens, logProbs } = input
  const isOff = offPolicyTokens(input)
  const off = isOff.reduce((sum, one) => sum + one, 0)
  let [all, own] = [0, 0]
  for (const [t, share] of input.shares.entries()) {
    all += share
    if (!isOff[t]) own += share
  }
  const scale = own > 0 ? (policy * all) / own : 0
  const output = loss.evaluate({
    ...input,
    oldLogProbs: isOff.map((one, t) => (one ? logProbs : input.oldLogProbs)[t]!),
    shares: input.shares.map((share, t) => (isOff[t] ? 0 : share * scale)),
  })
  const gradient = output.gradient.slice()
  let imitation = 0
  for (let t = 0; t < tokens; t++) {
    if (!isOff[t]) continue
    const p = Math.exp(logProbs[t]!)
    const phi = isWeighted ? p * (1 - p) : 1
    imitation -= (phi * logProbs[t]!) / off
    gradient[t] = -(weight * phi) / off
  }
  const metrics = {
    ...output.metrics,
    "policy/off-policy-fraction": tokens === 0 ? 0 : off / tokens,
    ...(off > 0 && { "loss/cross-entropy": imitation }),
  }
  return { ...output, loss: output.loss + weight * imitation, gradient, metrics }
}
