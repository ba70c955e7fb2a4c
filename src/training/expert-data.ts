import type { Sequence } from "../engine/rows.ts"
import type { Environment } from "../environment/environment.ts"
import { integer } from "../options/field.ts"
import { scheduleValue, type TrainingProgress } from "../options/schedule.ts"
import type { Random } from "../util/random.ts"
import { environmentRows } from "./expert-rows.ts"
import { longestSequence } from "./longest-sequence.ts"
import type { Training } from "./prepare.ts"

export const expertDataFields = {
  tasks: integer(4, "Tasks of the training split that the environment's expert plays in each iteration.", { min: 1 }),
}

/**
 * Returns the steps of the expert in one iteration as off-policy sequences with advantage 0, for the loss `chord`. Their old
 * log-probabilities are those of the policy before the updates. Steps longer than the model's positions are left out.
 */
export async function expertData<Task>(
  { environment, tokenizer, policy, signal, onWarning, options }: Training<Task>,
  progress: TrainingProgress,
  random: Random,
): Promise<Sequence[]> {
  if (!options.expertData) return []
  const { tasks } = options.expertData
  const expert = environment as Environment<Task> // checked in prepare
  const played = await environmentRows({ environment: expert, tokenizer, tasks, random, signal, onWarning })
  const longest = longestSequence(policy)
  const rows = played.filter(({ tokens }) => tokens.length <= longest)
  if (rows.length < played.length)
    onWarning(
      `${played.length - rows.length} of ${played.length} steps of the expert are longer than ${longest} tokens.`,
    )
  if (rows.length === 0) return []
  const temperature = scheduleValue(options.rollout.temperature, progress)
  const { logProbs } = await policy.logProbs(rows, { temperature, signal })
  let start = 0
  return rows.map((row) => ({
    ...row,
    spans: row.spans.map((span) => {
      const own = logProbs.slice(start, start + span.length)
      start += span.length
      return { ...span, advantage: 0, offPolicy: true, logProbs: own, oldLogProbs: own }
    }),
  }))
}
