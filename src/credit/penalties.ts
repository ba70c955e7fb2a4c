import type { Batch } from "./estimator.ts"
import type { OutcomeSettings } from "./options.ts"
import { withRewards } from "./with-columns.ts"

/** Placement of the invalid-action penalty. */
export interface Paid {
  /** Rewards r_t, [steps]; including the penalty with `penaltyPlacement: "reward"`. */
  readonly rewards: Float64Array
  /** Subtracts the penalty from a row's own scores with `penaltyPlacement: "step"`; otherwise returns the values unchanged. */
  score(values: Float64Array): Float64Array
}

/** Applies the invalid-action penalty to a batch. Default placement: in the reward. */
export function payPenalties(
  batch: Batch,
  {
    invalidActionPenalty,
    penaltyPlacement = "reward",
  }: Pick<OutcomeSettings, "invalidActionPenalty"> & Partial<OutcomeSettings>,
): Paid {
  const pay = (values: Float64Array) =>
    values.map((value, row) => (batch.valid[row] === 0 ? value - invalidActionPenalty : value))
  const keep = (values: Float64Array) => values
  if (invalidActionPenalty === 0) return { rewards: batch.rewards, score: keep }
  return penaltyPlacement === "reward"
    ? { rewards: pay(batch.rewards), score: keep }
    : { rewards: batch.rewards, score: pay }
}

/** Batch with the penalty included in the rewards. */
export function paidBatch(batch: Batch, { rewards }: Paid): Batch {
  return rewards === batch.rewards ? batch : withRewards(batch, rewards)
}
