import type { Completion, SampleRequest } from "../engine/engine.ts"
import type { Prompt } from "../tokenizer/chat-codec.ts"
import { decodeReply } from "./codec.ts"
import { checkCompletion } from "./completion.ts"
import type { EpisodeSetup } from "./episode.ts"
import { orEndRollout } from "./faults.ts"

/** What the policy says to a prompt, checked, and as text. What fails here ends the rollout. */
export async function sampleReply(
  { policy, tokenizer, temperature, signal }: Pick<EpisodeSetup, "policy" | "tokenizer" | "temperature" | "signal">,
  { tokens, attachments }: Prompt,
  { maxTokens, key }: Pick<SampleRequest, "maxTokens" | "key">,
): Promise<{ readonly completion: Completion; readonly text: string }> {
  const request = {
    prompt: tokens,
    ...(attachments && { attachments }),
    ...{ maxTokens, temperature, stopTokens: tokenizer.eosTokens, key, signal },
  }
  const sampling = async () => checkCompletion(await policy.sample(request), request, policy.vocabularySize)
  const completion = await orEndRollout(sampling())
  return { completion, text: decodeReply(tokenizer, completion.tokens) }
}
