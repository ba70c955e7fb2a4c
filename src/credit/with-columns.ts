import type { Batch } from "./estimator.ts"

/**
 * The same batch but for some columns. Columns that are found when they are asked for stay unasked, of either, which a spread would
 * not leave them.
 */
export function withColumns(batch: Batch, columns: Partial<Batch>): Batch {
  return Object.create(Object.getPrototypeOf(batch), {
    ...Object.getOwnPropertyDescriptors(batch),
    ...Object.getOwnPropertyDescriptors(columns),
  })
}

/** The same batch but for the rewards of its steps. Where rewards fall on tokens the difference falls on a step's last. */
export function withRewards(batch: Batch, rewards: Float64Array): Batch {
  const tokenRewards = batch.tokenRewards?.map((tokens, step) => {
    const other = Float64Array.from(tokens)
    other[other.length - 1]! += rewards[step]! - batch.rewards[step]!
    return other
  })
  return withColumns(batch, { rewards, ...(tokenRewards && { tokenRewards }) })
}
