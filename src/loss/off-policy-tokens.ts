import type { LossInput } from "./token-loss.ts"

/** 1 for each token of an off-policy segment, [tokens]. */
export function offPolicyTokens({ tokens, spanOffsets, offPolicy }: LossInput): Float64Array {
  const isOff = new Float64Array(tokens)
  offPolicy?.forEach((off, span) => {
    isOff.fill(off, spanOffsets[span], spanOffsets[span + 1])
  })
  return isOff
}
