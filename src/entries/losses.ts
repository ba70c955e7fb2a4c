// `gigpo/losses`: token losses, with the weights and schedules that they use.

import "../check-node.mts"

export { type AdaptiveKl, type AdaptiveKlOptions, adaptiveKl } from "../loss/adaptive-kl.ts"
export { composeLoss, type LossTerms } from "../loss/compose-loss.ts"
export { type DgpoWeightOptions, dgpoWeights } from "../loss/dgpo-weights.ts"
export { type HolderScheduleName, type HolderScheduleOptions, holderSchedule } from "../loss/holder-schedule.ts"
export { importanceWeights, type RolloutCorrectionOptions } from "../loss/importance-weights.ts"
export { mismatchMetrics } from "../loss/mismatch.ts"
export * from "../loss/shipped.ts"
export * from "../loss/shipped-cloning.ts"
export type { LossColumn, LossInput, LossOutput, TeacherTop, TokenLoss } from "../loss/token-loss.ts"
