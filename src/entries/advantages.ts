// `gigpo/advantages`: advantage estimators, their parts, and their equations on plain arrays.

import "../check-node.mts"

export { groupByAnchor, groupBySimilarity } from "../credit/anchors.ts"
export { type EstimatorWrapper, wrapEstimator } from "../credit/as-estimator.ts"
export { type BatchStep, toBatch } from "../credit/batch.ts"
export { type CandidateScores, candidateScores, candidateSequences } from "../credit/candidates.ts"
export {
  type CompletionSpan,
  completionSpans,
  type SpanKind,
  type SpanTags,
  tokenKinds,
} from "../credit/completion-spans.ts"
export type {
  Batch,
  Credit,
  Estimator,
  EstimatorCandidate,
  EstimatorContext,
  EstimatorStatistic,
  EstimatorStep,
  StepCredit,
} from "../credit/estimator.ts"
export { gigpoAdvantages } from "../credit/gigpo.ts"
export { grpoAdvantages } from "../credit/grpo.ts"
export { historyLevels } from "../credit/history-levels.ts"
export { klRewards } from "../credit/kl-reward.ts"
export { type Normalizer, type NormalizerOptions, normalizer } from "../credit/normalizer.ts"
export type { StepKey, StepNumbers } from "../credit/of-steps.ts"
export { parallelVariety, type VarietyOptions } from "../credit/parallel-variety.ts"
export {
  acrossTasks,
  anchorLevels,
  discountedReturn,
  type GigpoParts,
  keyLevels,
  type StepLevel,
  similarityLevels,
} from "../credit/parts.ts"
export { gigpoPresets } from "../credit/presets.ts"
export { discountedReturns } from "../credit/returns.ts"
export * from "../credit/shipped.ts"
export * from "../credit/shipped-wrappers.ts"
export { type TeacherTokenWeightOptions, teacherTokenWeights } from "../credit/teacher-token-weights.ts"
export { type TokenWeightOptions, tokenWeights } from "../credit/token-weights.ts"
export { generalizedAdvantages } from "../credit/traces.ts"
export { treeLevels } from "../credit/tree.ts"
export type {
  GigpoDiagnostics,
  GigpoOptions,
  GigpoResult,
  GigpoStep,
  GrpoDiagnostics,
  GrpoOptions,
  GrpoResult,
  GrpoStep,
  Normalization,
  SimilarityOptions,
} from "../credit/types.ts"
export { type WhitenOptions, whiten } from "../credit/whiten.ts"
export { answerProbabilities, informationGains } from "../rollout/information-gain.ts"
