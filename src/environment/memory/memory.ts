import type { CustomValue } from "../../options/table.ts"
import type { Random } from "../../util/random.ts"
import type { Stateful } from "../../util/state.ts"
import type { Message, Observation, PastStep } from "../environment.ts"

/** Function that writes the past steps as text for the prompt. The simplest form of a prompt memory. */
export type HistoryFormatter = (history: readonly PastStep[]) => string

/**
 * Prompt memory: writes the history into prompts, in place of the environment's own history. Keep the state of an episode in the object that `start`
 * returns. State of a run is saved with every checkpoint and may change only in `update`, so that all episodes of an
 * iteration see the same state. Each run needs a separate memory object.
 */
export interface PromptMemory extends Partial<Stateful> {
  /** Name of the memory, for messages and checkpoints. */
  readonly name: string
  /** Whether the policy writes notes in tags next to the action, which constrained decoding does not allow. Default false. */
  readonly notes?: boolean
  /** Opens the memory of one episode. */
  start(context: MemoryContext): EpisodeMemory
  /** Called after each rollout with its episodes, ordered by task and member, without failed and excluded ones. */
  update?(episodes: readonly RememberedEpisode[]): void
}

/** Prompt memory of one episode. */
export interface EpisodeMemory {
  /**
   * Returns the text for the prompt at this step. Called before every prompt, never concurrently. After a replay of actions, several
   * turns of the history are new.
   */
  render(history: readonly PastStep[], now: Observation): string | MemoryPrompt | Promise<string | MemoryPrompt>
}

/** Text that a memory adds to a prompt. */
export interface MemoryPrompt {
  /** Text about past steps. May be empty. */
  readonly past: string
  /** Text that replaces the observation in the prompt. Default: the text of the observation. */
  readonly observation?: string | undefined
}

/** Task, random numbers and access to the policy for the memory of an episode. */
export interface MemoryContext {
  /** Task of the episode. */
  readonly task: unknown
  /** Random numbers of the memory in this episode. */
  readonly random: Random
  /** Signal that is aborted when the episode is cancelled. */
  readonly signal: AbortSignal
  /**
   * Samples a completion of the policy. The call is a separate step before the step with the action, has reward 0 and is trained on unless
   * `learn` is false. A prompt that does not fit the model ends the episode. Throws if no policy samples, as with an expert.
   */
  sample(messages: readonly Message[], options?: ModelCallOptions): Promise<string>
}

/** Options of one model call by a memory. */
export interface ModelCallOptions {
  /** Name of the caller. Estimators that group steps by agent keep these calls apart from the actions. Default: the memory's name. */
  readonly agent?: string | undefined
  /** Anchor state of the step. Default: that of the environment, distinguished by the agent. */
  readonly anchor?: string | undefined
  /** Identifier of the conversation, if the episode has several. */
  readonly conversation?: string | number | undefined
  /** Maximum number of tokens of the completion. Default: `rollout.maxCompletionTokens`. */
  readonly maxTokens?: number | undefined
  /** Whether the completion is trained on. Default true. */
  readonly learn?: boolean | undefined
}

/** Finished episode, as `Memory.update` gets it. */
export interface RememberedEpisode {
  /** Task of the episode. */
  readonly task: unknown
  /** Steps of the episode without the memory's own calls. */
  readonly turns: readonly PastStep[]
  /** Sum of the rewards of the episode. */
  readonly return: number
  /** Metrics of the last step by name. */
  readonly metrics: Readonly<Record<string, number>>
}

/** Custom memory as the value of an option. */
export const customMemory: CustomValue<PromptMemory | HistoryFormatter> = {
  validate: (value) => {
    if (typeof value === "function") return undefined
    const { name, start } = (value ?? {}) as Partial<PromptMemory>
    if (typeof name === "string" && name.trim() !== "" && typeof start === "function") return undefined
    return "must be a function history => string, or a memory: an object with `name` and `start`"
  },
  meant: (value) => "start" in value || "update" in value,
}
