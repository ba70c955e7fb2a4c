import type { Completion, SampleRequest, Sampler } from "../engine/engine.ts"
import type { Prompt } from "../tokenizer/chat-codec.ts"
import { checkCompletion } from "./completion.ts"
import type { EpisodeSetup } from "./episode.ts"

/** What the policy is asked for after a prompt: a reply up to the end of its turn. */
export function replyRequest(
  { tokenizer, temperature, signal }: Pick<EpisodeSetup, "tokenizer" | "temperature" | "signal">,
  { tokens, attachments }: Prompt,
  { maxTokens, key }: Pick<SampleRequest, "maxTokens" | "key">,
): SampleRequest {
  return {
    prompt: tokens,
    ...(attachments && { attachments }),
    ...{ maxTokens, temperature, stopTokens: tokenizer.eosTokens, key, signal },
  }
}

/** What the policy says to that, checked. */
export async function sampleReply(policy: Sampler, request: SampleRequest): Promise<Completion> {
  return checkCompletion(await policy.sample(request), request, policy.vocabularySize)
}
