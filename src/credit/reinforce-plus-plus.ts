import { number, scheduled } from "../options/field.ts"
import type { TrainingProgress } from "../options/schedule.ts"
import type { OptionsOf } from "../options/table.ts"
import { defineEstimator } from "./define-estimator.ts"
import type { Estimator } from "./estimator.ts"
import { outcomeFields, settle } from "./options.ts"
import { paidEstimator } from "./paid-estimator.ts"
import { discountedReturns } from "./returns.ts"
import { perToken, rewardsOfTokens, spread } from "./tokens.ts"
import { whiten } from "./whiten.ts"

/** Options of `reinforcePlusPlus`. */
export const reinforcePlusPlusFields = {
  gamma: scheduled(number(1, "Discount factor from one sampled token to the next, in (0, 1].", { above: 0, max: 1 })),
  invalidActionPenalty: outcomeFields.invalidActionPenalty,
}

/** Options of `reinforcePlusPlus`. */
export type ReinforcePlusPlusOptions = OptionsOf<typeof reinforcePlusPlusFields>

/**
 * REINFORCE++ (arXiv 2501.03262): A_t = R_t = Σ_{k≥t} γ^(k-t) r_k over the sampled tokens of the whole episode, then whitened over all
 * tokens of the batch. Tokens between completions are not counted. Neither a critic nor groups are needed. `returns` are the R_t.
 *
 * @throws BAD_ARGUMENT for an invalid option
 */
export const reinforcePlusPlus = defineEstimator({
  name: "reinforce-plus-plus",
  fields: reinforcePlusPlusFields,
  about: {
    system: "REINFORCE++",
    origin: "baseline",
    changes: ["credit"],
    equation: "A_t = Σ_{k≥t} γ^(k-t) r_k over tokens, whitened over the batch",
    source: "arXiv 2501.03262",
    status: "exact",
  },
  make(options: ReinforcePlusPlusOptions = {}): Estimator {
    const settingsAt = (progress: TrainingProgress) =>
      settle("reinforce-plus-plus", options, reinforcePlusPlusFields, progress)
    return paidEstimator("reinforce-plus-plus", settingsAt, {}, (batch, { gamma }) => {
      const { lengths } = batch
      const returns = discountedReturns(rewardsOfTokens(batch), gamma, spread(batch.episode, lengths))
      return { advantages: perToken(whiten(returns), lengths), returns: perToken(returns, lengths) }
    })
  },
})
