import { type Sequence, stepSequence } from "../engine/sequence.ts"
import type { TrainingProgress } from "../options/schedule.ts"
import { encodePaced } from "../tokenizer/encoder.ts"
import { joined } from "../util/joined.ts"
import { itemsOfPiece, Pace, type Pieces } from "../util/pace.ts"
import { longestSequence } from "./longest-sequence.ts"
import { asOffPolicy } from "./off-policy-rows.ts"
import type { Training } from "./prepare.ts"
import type { CollectedStep } from "./steps.ts"

/**
 * Returns the observations that followed the completions of an iteration as off-policy sequences, for a loss with `observations` (`echo`):
 * the tokens between two completions of a growing conversation, and otherwise the text of the next observation after a completion. The
 * observation after the last step of an episode is not in a prompt and is left out, and so are steps with images and sequences that are
 * longer than the model's positions.
 */
export async function observationRows<Task>(
  training: Training<Task>,
  steps: readonly CollectedStep[],
  progress: TrainingProgress,
): Promise<Sequence[]> {
  const { loss, tokenizer, policy, signal } = training
  if (!loss.observations) return []
  const longest = longestSequence(policy)
  const rows: Sequence[] = []
  const pace = new Pace(signal)
  for (const [{ record: before }, { record: after }] of await pace.through(followed(steps))) {
    if (pace.due()) await pace.rest()
    if (before.attachments || after.attachments) continue
    const context = joined(Int32Array, [before.prompt, before.completion])
    const isGrown = after.prompt.length > context.length && context.every((token, at) => after.prompt[at] === token)
    const observed = isGrown
      ? after.prompt.subarray(context.length)
      : await encodePaced(tokenizer, after.observation.text, pace)
    if (observed.length > 0 && context.length + observed.length <= longest) rows.push(stepSequence(context, observed))
  }
  return await asOffPolicy(training, rows, progress)
}

/** Pairs of a step and the next one of the same agent in the same conversation. */
function* followed(steps: readonly CollectedStep[]): Pieces<[CollectedStep, CollectedStep][]> {
  const pairs: [CollectedStep, CollectedStep][] = []
  const last = new Map<string, CollectedStep>()
  for (const [index, step] of steps.entries()) {
    if (index % itemsOfPiece === 0) yield
    const key = JSON.stringify([step.task, step.episode, step.conversation, step.agent])
    const before = last.get(key)
    if (before) pairs.push([before, step])
    last.set(key, step)
  }
  return pairs
}
