import type { Batch } from "./estimator.ts"
import type { OutcomeSettings } from "./options.ts"
import { withRewards } from "./with-columns.ts"

/** Where the penalty of invalid actions goes. */
export interface Paid {
  /** r_t, with the penalty in it under `penaltyPlacement: "reward"`, [steps]. */
  readonly rewards: Float64Array
  /** Takes off what is taken off a row's own scores: the penalty under `penaltyPlacement: "row"`, else nothing. */
  score(values: Float64Array): Float64Array
}

/** @param settings without `penaltyPlacement` the reward is where it goes */
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

/** The batch with what was paid in its rewards. */
export function paidBatch(batch: Batch, { rewards }: Paid): Batch {
  return rewards === batch.rewards ? batch : withRewards(batch, rewards)
}
