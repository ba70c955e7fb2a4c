import type { Batch } from "./estimator.ts"
import { stepsAfter } from "./turns.ts"
import { withColumns, withRewards } from "./with-columns.ts"

/**
 * Batch with a reward of decay · min(1, perStep · T) at the last step of each episode, T its number of steps. The reward counts in the
 * return of the episode and not in returns of steps (`Batch.episodeRewards`).
 */
export function withTurnRewards(batch: Batch, perStep: number, decay: number): Batch {
  if (perStep === 0 || decay === 0) return batch
  const { episode, rewards } = batch
  const turns = new Float64Array(batch.length)
  for (const id of episode) turns[id]! += 1
  const after = stepsAfter(episode)
  const bonus = rewards.map((_, step) => (after[step]! < 0 ? decay * Math.min(1, perStep * turns[episode[step]!]!) : 0))
  const paid = withRewards(
    batch,
    Float64Array.from(rewards, (reward, step) => reward + bonus[step]!),
  )
  return withColumns(paid, { episodeRewards: bonus })
}
