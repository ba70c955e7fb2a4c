import { checkFixedLength } from "../engine/check-arguments.ts"
import type { NativeLoss } from "../engine/engine.ts"
import { shares } from "../engine/shares.ts"
import { readOptions } from "../options/read.ts"
import { type ScheduledValues, scheduleValues } from "../options/schedule.ts"
import type { OptionsOf, Resolved } from "../options/table.ts"
import { GigpoError } from "../util/errors.ts"
import { asTokenLoss, evaluateLoss } from "./as-token-loss.ts"
import { klEstimators } from "./kl-estimators.ts"
import { lossFields } from "./options.ts"
import type { LossInput, LossNeed, LossOutput, TokenLoss } from "./token-loss.ts"

/** Options of `composeLoss`: KL term, entropy bonus and aggregation. Numbers may be schedules. */
export type LossTerms = OptionsOf<typeof lossFields>
type Terms = ScheduledValues<Resolved<typeof lossFields>>

/**
 * Adds a KL term to the reference policy and an entropy bonus to a policy loss:
 *
 *     policy loss + klWeight Σ share · KL - entropyWeight Σ share · H
 *
 * The shares are the weights of the tokens in the aggregation. The composed loss has the needs of the policy loss, "reference" unless
 * klWeight is constantly 0, and "entropy" unless entropyWeight is constantly 0. It also reports "loss/kl", the mean KL estimate over tokens,
 * where reference log-probabilities are given, also at klWeight 0.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid option.
 */
export function composeLoss(loss: TokenLoss, given: LossTerms = {}): TokenLoss {
  const policy = asTokenLoss(loss)
  const terms = readOptions("composeLoss", given, lossFields)
  checkFixedLength(terms)
  const needs = new Set<LossNeed>(policy.needs)
  if (terms.klWeight !== 0) needs.add("reference")
  if (terms.entropyWeight !== 0) needs.add("entropy")
  return {
    name: policy.name,
    needs: [...needs],
    ...(policy.teacherTop !== undefined && { teacherTop: policy.teacherTop }),
    native: (progress) => nativeForm(policy.native?.(progress), scheduleValues(terms, progress)),
    evaluate: (input) => addTerms(policy, scheduleValues(terms, input.progress), input),
    ...(policy.state && { state: () => policy.state!() }),
    ...(policy.restore && { restore: (state) => policy.restore!(state) }),
  }
}

function nativeForm(policy: NativeLoss | undefined, terms: Terms): NativeLoss | undefined {
  if (policy?.kind === "clipped-surrogate" && policy.klWeight === 0 && policy.entropyWeight === 0)
    return { ...policy, ...terms }
  const { klWeight, entropyWeight, aggregation } = terms
  return klWeight === 0 && entropyWeight === 0 && aggregation === "token-mean" ? policy : undefined
}

function addTerms(policy: TokenLoss, terms: Terms, batch: LossInput): LossOutput {
  const { klWeight, klEstimator, entropyWeight, aggregation, fixedLength } = terms
  const input = { ...batch, shares: shares(aggregation, batch.offsets, fixedLength) }
  const { tokens, logProbs, referenceLogProbs, entropies } = input
  if (klWeight !== 0 && referenceLogProbs === undefined) throw missing("klWeight", "referenceLogProbs")
  if (entropyWeight !== 0 && entropies === undefined) throw missing("entropyWeight", "entropies")
  const output = evaluateLoss(policy, input)
  const gradient = klWeight === 0 ? output.gradient : output.gradient.slice()
  let { loss, entropyGradient } = output

  let kl = 0
  if (referenceLogProbs !== undefined) {
    const { value, gradient: slope } = klEstimators[klEstimator]
    for (let t = 0; t < tokens; t++) {
      const d = referenceLogProbs[t]! - logProbs[t]!
      const estimate = value(d)
      kl += estimate
      if (klWeight === 0) continue
      loss += klWeight * input.shares[t]! * estimate
      gradient[t]! += klWeight * input.shares[t]! * slope(d)
    }
  }
  if (entropyWeight !== 0) {
    entropyGradient = entropyGradient?.slice() ?? new Float32Array(tokens)
    for (let t = 0; t < tokens; t++) {
      loss -= entropyWeight * input.shares[t]! * entropies![t]!
      entropyGradient[t]! -= entropyWeight * input.shares[t]!
    }
  }
  const isMeasured = referenceLogProbs !== undefined && tokens > 0
  const metrics = { ...output.metrics, ...(isMeasured && { "loss/kl": kl / tokens }) }
  return { ...output, loss, gradient, metrics, ...(entropyGradient && { entropyGradient }) }
}

function missing(weight: string, column: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", `composeLoss: ${weight} is not 0 and needs ${column}.`)
}
