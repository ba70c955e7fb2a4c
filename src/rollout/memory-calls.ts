import { checkWhole } from "../engine/check-arguments.ts"
import { checkMessages, playing } from "../environment/contract.ts"
import type { Message, Observation } from "../environment/environment.ts"
import type { ModelCallOptions } from "../environment/memory/memory.ts"
import { GigpoError } from "../util/errors.ts"
import { decodeReply, encodePrompt } from "./codec.ts"
import { checkFits } from "./end-of-episode.ts"
import type { EpisodeSetup, EpisodeStep } from "./episode.ts"
import { orEndRollout, RolloutFault } from "./faults.ts"
import { recordedReply } from "./policy-choice.ts"
import { replyRequest, sampleReply } from "./sample-reply.ts"

/** What a memory asks of whoever plays, at the observation that a prompt is made for. */
export type Ask = (messages: readonly Message[], options: ModelCallOptions & AskedAt) => Promise<string>

export interface AskedAt {
  readonly agent: string
  readonly now: Observation
}

/** The calls that a memory makes of the policy in one episode; those that are learned from wait here as steps. */
export class MemoryCalls<Task> {
  readonly #setup: EpisodeSetup<Task>
  /** A place for each call, in the order in which they were made; those not learned from stay empty. */
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

  /** A branch would ask anew, and its first reply be one to another prompt than its own. */
  refuseForks(): void {
    if (this.#places.length === 0) return
    const text = "hooks.onTurn forks where a memory asks the policy; take a memory that does not ask, or do not fork."
    throw new RolloutFault(new GigpoError("BAD_ARGUMENT", text))
  }

  /** What ends the rollout, whatever the memory made of it. */
  get fault(): RolloutFault | undefined {
    return this.#fault
  }

  /** The steps since it was asked last. */
  take(): EpisodeStep[] {
    if (this.#fault) throw this.#fault
    const taken = this.#places.slice(this.#taken)
    this.#taken = this.#places.length
    return taken.filter((step) => step !== undefined)
  }

  async #call(messages: readonly Message[], options: ModelCallOptions & AskedAt, place: number) {
    const { policy, tokenizer, environment, random, maxPositions, maxCompletionTokens } = this.#setup
    const { agent, now, anchor = `${agent}\n${now.anchor}`, conversation, maxTokens = maxCompletionTokens } = options
    checkMessages(playing(environment.name), messages)
    checkWhole(maxTokens, "maxTokens")
    const prompt = await encodePrompt(tokenizer, messages, policy.vocabularySize)
    checkFits(prompt.tokens.length, maxTokens, maxPositions)
    const { key } = random.fork("memory", "reply", place)
    const completion = await orEndRollout(sampleReply(policy, replyRequest(this.#setup, prompt, { maxTokens, key })))
    const text = decodeReply(tokenizer, completion.tokens)
    const step: EpisodeStep = {
      observation: { text: messages.at(-1)!.content, anchor },
      ...recordedReply({ prompt, completion, reply: text, action: text, valid: true }),
      ...{ reward: 0, agent },
      ...(conversation !== undefined && { conversation }),
    }
    return { step, text }
  }
}
