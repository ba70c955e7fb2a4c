import type { Batch } from "./estimator.ts"

/** Returns the batch with some columns replaced. Lazy columns of both stay lazy, which a spread would not preserve. */
export function withColumns(batch: Batch, columns: Partial<Batch>): Batch {
  return Object.create(Object.getPrototypeOf(batch), {
    ...Object.getOwnPropertyDescriptors(batch),
    ...Object.getOwnPropertyDescriptors(columns),
  })
}

/** Returns the batch with other rewards. Where rewards are per token, the difference is applied to the last token of each step. */
export function withRewards(batch: Batch, rewards: Float64Array): Batch {
  const tokenRewards = batch.tokenRewards?.map((tokens, step) => {
    const other = Float64Array.from(tokens)
    other[other.length - 1]! += rewards[step]! - batch.rewards[step]!
    return other
  })
  return withColumns(batch, { rewards, ...(tokenRewards && { tokenRewards }) })
}
