import { type Contract, checkMemoryPrompt } from "../environment/contract.ts"
import type { Message, Observation, PastStep } from "../environment/environment.ts"
import type { MemoryContext, MemoryPrompt, PromptMemory } from "../environment/memory/memory.ts"
import { beside } from "../environment/picture.ts"
import { GigpoError } from "../util/errors.ts"
import { unlessAborted } from "../util/linked-abort.ts"
import type { Ask } from "./memory-calls.ts"

export interface RememberSetup extends Omit<MemoryContext, "sample" | "signal"> {
  readonly signal: AbortSignal
  /** Answers calls of the memory. Left out if no policy plays. */
  readonly sample?: Ask | undefined
}

/** Returns a function with the memory's contribution to each prompt of an episode, after checks. */
export function remember(
  memory: PromptMemory,
  { sample, ...setup }: RememberSetup,
  contract: Contract,
): (history: readonly PastStep[], now: Observation) => Promise<MemoryPrompt> {
  const { name } = memory
  let at: Observation
  const episode = memory.start({
    ...setup,
    sample: async (messages, { agent = name, ...options } = {}) => {
      if (sample) return await sample(messages, { ...options, agent, now: at })
      throw new GigpoError(
        "BAD_ARGUMENT",
        `The memory ${name} calls the policy, but no policy plays here: use a memory without calls, such as recent or state.`,
      )
    },
  })
  return async (history, now) => {
    at = now
    const returned = await unlessAborted(setup.signal, () => episode.render([...history], now))
    return checkMemoryPrompt(contract, name, returned)
  }
}

/** Inserts the memory's text before the text of the last message. */
export function withPast(messages: readonly Message[], { past }: MemoryPrompt): readonly Message[] {
  const last = messages.at(-1)
  if (past === "" || last === undefined) return messages
  return [...messages.slice(0, -1), { ...last, content: `${beside(last, past)}\n\n${last.content}` }]
}
