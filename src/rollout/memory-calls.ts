import { checkWhole } from "../engine/check-arguments.ts"
import { checkMessages, playing } from "../environment/contract.ts"
import type { Message, Observation } from "../environment/environment.ts"
import type { ModelCallOptions } from "../environment/memory/memory.ts"
import { GigpoError } from "../util/errors.ts"
import { decodeCompletion, encodePrompt } from "./codec.ts"
import { checkFits } from "./end-of-episode.ts"
import type { EpisodeSetup, EpisodeStep } from "./episode.ts"
import { orEndRollout, RolloutFault } from "./faults.ts"
import { recordedCompletion } from "./policy-choice.ts"
import { completionRequest, sampleCompletion } from "./sample-completion.ts"

/** Function that answers a call of a memory, at the observation of the current prompt. */
export type Ask = (messages: readonly Message[], options: ModelCallOptions & CallPlace) => Promise<string>

export interface CallPlace {
  readonly agent: string
  readonly now: Observation
}

/** Calls of a memory to the policy in one episode. Calls that are trained on are collected as steps. */
export class MemoryCalls<Task> {
  readonly #setup: EpisodeSetup<Task>
  /** One place per call, in order of the calls. Places of calls that are not trained on stay empty. */
  readonly #places: (EpisodeStep | undefined)[] = []
  #taken = 0
  #fault: RolloutFault | undefined

  constructor(setup: EpisodeSetup<Task>) {
    this.#setup = setup
  }

  readonly ask: Ask = async (messages, options) => {
    const place = this.#places.push(undefined) - 1 // before anything is waited for
    try {
      const { step, text } = await this.#call(messages, options, place)
      if (options.learn ?? true) this.#places[place] = step
      return text
    } catch (error) {
      if (error instanceof RolloutFault) this.#fault ??= error
      throw error
    }
  }

  /** Error for a decision to branch after a call: a branch would repeat the call, so its first completion would belong to another prompt. */
  refuseForks(): void {
    if (this.#places.length === 0) return
    const text =
      "hooks.onTurn cannot branch where a memory calls the policy; use a memory without calls, or hooks that do not branch."
    throw new RolloutFault(new GigpoError("BAD_ARGUMENT", text))
  }

  /** Error that ends the rollout, even if the memory caught it. */
  get fault(): RolloutFault | undefined {
    return this.#fault
  }

  /** Returns the steps since the last call of this method. */
  take(): EpisodeStep[] {
    if (this.#fault) throw this.#fault
    const taken = this.#places.slice(this.#taken)
    this.#taken = this.#places.length
    return taken.filter((step) => step !== undefined)
  }

  async #call(messages: readonly Message[], options: ModelCallOptions & CallPlace, place: number) {
    const { policy, tokenizer, environment, random, maxPositions, maxCompletionTokens } = this.#setup
    const { agent, now, anchor = `${agent}\n${now.anchor}`, conversation, maxTokens = maxCompletionTokens } = options
    checkMessages(playing(environment.name), messages)
    checkWhole(maxTokens, "maxTokens")
    const prompt = await encodePrompt(tokenizer, messages, policy.vocabularySize)
    checkFits(prompt.tokens.length, maxTokens, maxPositions)
    const { key } = random.derive("memory", "reply", place)
    const completion = await orEndRollout(
      sampleCompletion(policy, completionRequest(this.#setup, prompt, { maxTokens, key })),
    )
    const text = decodeCompletion(tokenizer, completion.tokens)
    const step: EpisodeStep = {
      observation: { text: messages.at(-1)!.content, anchor },
      ...recordedCompletion({ prompt, completion, text, action: text, valid: true }),
      ...{ reward: 0, agent },
      ...(conversation !== undefined && { conversation }),
    }
    return { step, text }
  }
}
