import type { GigpoStep } from "../../src/credit/types.ts"
import type { Random } from "../../src/util/random.ts"

/** One episode, a [anchor, reward] or [anchor, reward, valid] for each step. */
export function episode(
  task: string | number,
  id: string | number,
  steps: readonly (readonly [anchor: string, reward: number, valid?: boolean])[],
): GigpoStep[] {
  return steps.map(([anchor, reward, valid = true]) => ({ task, episode: id, anchor, reward, valid }))
}

/** Random merge of episodes that keeps the order within each. */
export function interleave<Step>(episodes: readonly (readonly Step[])[], random: Random): Step[] {
  const turns = random.shuffled(episodes.flatMap((steps, i) => steps.map(() => i)))
  const taken = episodes.map(() => 0)
  return turns.map((i) => episodes[i]![taken[i]!++]!)
}
