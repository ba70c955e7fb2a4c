import type { GigpoStep } from "../../src/credit/types.ts"

/** One episode, a [anchor, reward] or [anchor, reward, valid] for each step. */
export function episode(
  task: string | number,
  id: string | number,
  steps: readonly (readonly [anchor: string, reward: number, valid?: boolean])[],
): GigpoStep[] {
  return steps.map(([anchor, reward, valid = true]) => ({ task, episode: id, anchor, reward, valid }))
}
