import { without } from "../options/fixed.ts"
import type { OptionsOf } from "../options/table.ts"
import { defineEstimator } from "./define-estimator.ts"
import type { Batch, Estimator, StepCredit } from "./estimator.ts"
import { outcomeFields, settle } from "./options.ts"
import { centred, outcomeEstimator } from "./outcomes.ts"
import { stepsAfter } from "./turns.ts"
import { withRewards } from "./with-columns.ts"

/** Options of `memAgent`. Each sample counts once in the mean, so `episodeStatistics` does not apply. */
export const memAgentFields = { ...without(outcomeFields, "episodeStatistics") }

/** Options of `memAgent`. */
export type MemAgentOptions = OptionsOf<typeof memAgentFields>

/**
 * MemAgent estimator (BytedTsinghua-SIA/MemAgent): an episode is one sample of several conversations that pass on a memory. The reward of
 * the last conversation is the reward of the sample. A = R - mean R over the samples of the task, equal for all steps of all
 * conversations. The invalid-action penalty applies in every conversation. Intended for the aggregation `token-mean`. Equal to `dr-grpo`
 * for a single conversation.
 *
 * @throws BAD_ARGUMENT for an invalid option
 */
export const memAgent = defineEstimator({
  name: "mem-agent",
  fields: memAgentFields,
  about: {
    system: "MemAgent",
    origin: "successor",
    changes: ["credit", "prompt"],
    equation: "A = R - mean R over samples, equal for every conversation of a sample",
    source: "BytedTsinghua-SIA/MemAgent",
    set: { "environment.memory": "chunks" },
    status: "exact",
    note: "The memory `chunks` splits texts by characters instead of tokens. Interpretation: the question is one paragraph.",
  },
  make(options: MemAgentOptions = {}): Estimator<StepCredit> {
    const estimator = outcomeEstimator(
      "mem-agent",
      (progress) => ({
        ...settle("mem-agent", options, memAgentFields, progress),
        episodeStatistics: "episodes" as const,
      }),
      centred,
    )
    return { ...estimator, estimate: (batch, context) => estimator.estimate(lastConversations(batch), context) }
  },
})

/** Batch with the rewards of each episode's last conversation only. */
function lastConversations(batch: Batch): Batch {
  const { conversation, episode, rewards } = batch
  if (conversation === undefined) return batch
  const after = stepsAfter(episode)
  const last = new Set(conversation.filter((_, row) => after[row]! < 0))
  return withRewards(
    batch,
    rewards.map((reward, row) => (last.has(conversation[row]!) ? reward : 0)),
  )
}
