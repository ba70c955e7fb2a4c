import type { Completion } from "../engine/engine.ts"
import type { Message } from "../environment/environment.ts"
import type { Prompt } from "../tokenizer/chat-codec.ts"
import { callHook } from "./call-hook.ts"
import { decodeReply, encodePrompt } from "./codec.ts"
import { checkCompletion } from "./completion.ts"
import type { EpisodeSetup } from "./episode.ts"
import { orEndRollout } from "./faults.ts"
import { checkDecision } from "./hook-answers.ts"
import { rolloutDefaults } from "./options.ts"
import type { Choice, Chooser } from "./turns.ts"

/** What the policy was shown and said, besides the choice that it comes to. */
export interface PolicyChoice extends Choice {
  readonly prompt: Prompt
  readonly completion: Completion
}

/** What the policy says, until a prompt and a reply no longer fit the model. `hint` is added to every prompt. */
export function policyReplies<Task>(setup: EpisodeSetup<Task>, hint?: string): Chooser<PolicyChoice, "overflow"> {
  const { policy, tokenizer, task, random, temperature, maxReplyTokens, signal, hooks } = setup
  const { resamples = rolloutDefaults.resamples } = setup
  return async ({ index, now, history, messages: render, parse }) => {
    const messages = withHint(await render(), hint)
    const prompt = await encodePrompt(tokenizer, messages, policy.vocabularySize)
    if (prompt.tokens.length + maxReplyTokens > setup.maxPositions) return "overflow"
    for (let attempt = 0; ; attempt++) {
      // The first attempt's key is what it would be without a hook.
      const { key } = random.fork("reply", index, ...(attempt > 0 ? [attempt] : []))
      const request = {
        prompt: prompt.tokens,
        ...(prompt.attachments && { attachments: prompt.attachments }),
        maxTokens: maxReplyTokens,
        temperature,
        stopTokens: tokenizer.eosTokens,
        key,
        signal,
      }
      const sampling = async () => checkCompletion(await policy.sample(request), request, policy.vocabularySize)
      const completion = await orEndRollout(sampling())
      const text = decodeReply(tokenizer, completion.tokens)
      const parsed = await parse(text)
      const choice = { ...parsed, reply: text, prompt, completion }
      if (!hooks?.onTurn) return choice
      const turn = { task, index, attempt, observation: now, history: [...history], messages, completion, text, parsed }
      const decided = callHook(
        "hooks.onTurn",
        setup,
        ["turn", index, attempt],
        (to) => hooks.onTurn!(turn, to),
        checkDecision,
      )
      if ((await orEndRollout(decided)).kind === "accept" || attempt === resamples) return choice
    }
  }
}

function withHint(messages: readonly Message[], hint: string | undefined): readonly Message[] {
  const last = messages.at(-1)
  if (hint === undefined || last === undefined) return messages
  return [...messages.slice(0, -1), { ...last, content: `${last.content}\n\n${hint}` }]
}
