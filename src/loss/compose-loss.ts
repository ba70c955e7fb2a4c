import { checkFixedLength } from "../engine/check-arguments.ts"
import type { NativeLoss } from "../engine/engine.ts"
import { shares } from "../engine/shares.ts"
import { without } from "../options/fixed.ts"
import { readOptions } from "../options/read.ts"
import { type ScheduledValues, scheduleValues } from "../options/schedule.ts"
import type { OptionsOf, ResolvedOf } from "../options/table.ts"
import { GigpoError } from "../util/errors.ts"
import { asTokenLoss, evaluateLoss } from "./as-token-loss.ts"
import { klEstimators } from "./kl-estimators.ts"
import { lossFields } from "./options.ts"
import type { LossColumn, LossInput, LossOutput, TokenLoss } from "./token-loss.ts"

/** Options of `composeLoss`: KL term, teacher term, entropy bonus and aggregation. Numbers may be schedules. */
export type LossTerms = OptionsOf<typeof lossFields>
type Terms = ScheduledValues<ResolvedOf<typeof lossFields>>

/**
 * Adds a KL term to the reference policy, a gated log-ratio of a teacher to the policy and an entropy bonus to a policy loss:
 *
 *     policy loss + klWeight Σ share · KL + teacherWeight Σ share · σ(teacherGate d) d - entropyWeight Σ share · H
 *
 * The shares are the weights of the tokens in the aggregation. d = log p_teacher - log p, and its gate σ is a constant: the term of SDAR
 * (arXiv 2605.15155). The composed loss has the needs of the policy loss, and "reference", "teacher" and "entropy" unless klWeight,
 * teacherWeight and entropyWeight are constantly 0. It also reports "loss/kl", the mean KL estimate over tokens, where reference
 * log-probabilities are given, also at klWeight 0; with teacherWeight "teacher/log-ratio" and "teacher/gate", means over tokens of d and σ.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid option.
 */
export function composeLoss(loss: TokenLoss, given: LossTerms = {}): TokenLoss {
  const policy = asTokenLoss(loss)
  const terms = readOptions("composeLoss", given, lossFields)
  checkFixedLength(terms)
  const needs = new Set<LossColumn>(policy.needs)
  if (terms.klWeight !== 0) needs.add("reference")
  if (terms.teacherWeight !== 0) needs.add("teacher")
  if (terms.entropyWeight !== 0) needs.add("entropy")
  return {
    name: policy.name,
    needs: [...needs],
    ...(policy.teacherTop !== undefined && { teacherTop: policy.teacherTop }),
    ...(policy.observations && { observations: true }),
    native: (progress) =>
      terms.teacherWeight === 0 ? nativeForm(policy.native?.(progress), scheduleValues(terms, progress)) : undefined,
    evaluate: (input) => addTerms(policy, scheduleValues(terms, input.progress), input),
    ...(policy.state && { state: () => policy.state!() }),
    ...(policy.restore && { restore: (state) => policy.restore!(state) }),
  }
}

function nativeForm(policy: NativeLoss | undefined, all: Terms): NativeLoss | undefined {
  const terms = without(all, "teacherWeight", "teacherGate")
  if (policy?.kind === "clipped-surrogate" && policy.klWeight === 0 && policy.entropyWeight === 0)
    return { ...policy, ...terms }
  const { klWeight, entropyWeight, aggregation } = terms
  return klWeight === 0 && entropyWeight === 0 && aggregation === "token-mean" ? policy : undefined
}

function addTerms(policy: TokenLoss, terms: Terms, batch: LossInput): LossOutput {
  const { klWeight, klEstimator, teacherWeight, teacherGate, entropyWeight, aggregation, fixedLength } = terms
  const input = { ...batch, shares: shares(aggregation, batch.offsets, fixedLength) }
  const { tokens, logProbs, referenceLogProbs, teacherLogProbs, entropies } = input
  if (klWeight !== 0 && referenceLogProbs === undefined) throw missing("klWeight", "referenceLogProbs")
  if (teacherWeight !== 0 && teacherLogProbs === undefined) throw missing("teacherWeight", "teacherLogProbs")
  if (entropyWeight !== 0 && entropies === undefined) throw missing("entropyWeight", "entropies")
  const output = evaluateLoss(policy, input)
  const gradient = klWeight === 0 && teacherWeight === 0 ? output.gradient : output.gradient.slice()
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
  let [logRatios, gates] = [0, 0]
  if (teacherWeight !== 0) {
    for (let t = 0; t < tokens; t++) {
      const d = teacherLogProbs![t]! - logProbs[t]!
      const gate = 1 / (1 + Math.exp(-teacherGate * d))
      logRatios += d
      gates += gate
      loss += teacherWeight * input.shares[t]! * gate * d
      gradient[t]! -= teacherWeight * input.shares[t]! * gate
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
  const isTaught = teacherWeight !== 0 && tokens > 0
  const metrics = {
    ...output.metrics,
    ...(isMeasured && { "loss/kl": kl / tokens }),
    ...(isTaught && { "teacher/log-ratio": logRatios / tokens, "teacher/gate": gates / tokens }),
  }
  return { ...output, loss, gradient, metrics, ...(entropyGradient && { entropyGradient }) }
}

function missing(weight: string, column: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", `composeLoss: ${weight} is not 0 and needs ${column}.`)
}
