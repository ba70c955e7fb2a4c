import type { Prompt } from "../tokenizer/chat-codec.ts"
import type { EpisodeStep, ScoredCandidate } from "./episode.ts"
import type { SampledReply } from "./hooks.ts"
import type { Choice } from "./turns.ts"

/** What the policy was shown and said, besides the choice that it comes to. */
export interface PolicyChoice extends Choice {
  readonly prompt: Prompt
  readonly completion: SampledReply
  /** Where several replies were sampled: what this one is worth, and the others. */
  readonly score?: number
  readonly candidates?: readonly ScoredCandidate[]
}

/** What a step records of a reply. */
export function recordedReply({ prompt, completion, reply, action, valid, score, candidates }: PolicyChoice) {
  const { tokens, logProbs, entropies, forced, finishReason } = completion
  return {
    prompt: prompt.tokens,
    reply: tokens,
    logProbs,
    ...(entropies && { entropies }),
    ...(forced && { forced }),
    text: reply,
    action,
    valid,
    finishReason,
    ...(prompt.attachments && { attachments: prompt.attachments }),
    ...(score !== undefined && { score }),
    ...(candidates && { candidates }),
  } satisfies Partial<EpisodeStep>
}
