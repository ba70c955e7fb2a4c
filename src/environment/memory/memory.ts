import type { CustomValue } from "../../options/table.ts"
import type { Random } from "../../util/random.ts"
import type { Stateful } from "../../util/state.ts"
import type { Message, Observation, Turn } from "../environment.ts"

// The seam of what a prompt remembers. A function of the past is enough where nothing else is needed.

/** Writes the past steps, of nothing but themselves. */
export type HistoryFormatter = (history: readonly Turn[]) => string

/**
 * What prompts tell of the past, in place of the environment's own lines. What it keeps of an episode lies in what `begin` gives;
 * what it keeps over a run is its state, saved with every checkpoint, and changes nowhere but in `learn`: the episodes of an
 * iteration all find it as the iteration did, however many are in flight. Each run needs one of its own.
 */
export interface Memory extends Partial<Stateful> {
  readonly name: string
  /** One for each episode. */
  begin(context: MemoryContext): EpisodeMemory
  /** Told of an iteration's episodes, once all are played, in the order of tasks and members; failed and dropped ones left out. */
  learn?(episodes: readonly RememberedEpisode[]): void
}

/** Memory of one episode. */
export interface EpisodeMemory {
  /**
   * What the prompt at this step tells. Called before every prompt, one after the other; where actions were replayed, several
   * turns are new at once.
   */
  tell(history: readonly Turn[], now: Observation): string | MemoryPrompt | Promise<string | MemoryPrompt>
}

/** Text that a memory adds to a prompt. */
export interface MemoryPrompt {
  /** "" where there is nothing to tell. */
  readonly past: string
  /** Stands in the prompt in place of what is observed. Default: the observation's own text. */
  readonly observation?: string | undefined
}

/** Values with which a memory is opened for an episode. */
export interface MemoryContext {
  readonly task: unknown
  /** The memory's own random numbers in this episode. */
  readonly random: Random
  readonly signal: AbortSignal
  /**
   * Asks the policy and gives its reply. The call is a step of its own, before the action that it prepares, with a reward of 0: it
   * is learned from as all else. A prompt that does not fit the model ends the episode. Where nobody samples (an expert plays) it throws.
   */
  ask(messages: readonly Message[], options?: ModelCallOptions): Promise<string>
}

/** Options of one call of the model by a memory. */
export interface ModelCallOptions {
  /** Whose call it is: estimators that compare by agents keep it apart from the actions. Default: the memory's name. */
  readonly agent?: string | undefined
  /** Identifies the state that is asked in. Default: the environment's state, told apart by the agent. */
  readonly anchor?: string | undefined
  /** Which conversation of the episode it belongs to, where there are several. */
  readonly conversation?: string | number | undefined
  /** Default: `rollout.maxCompletionTokens`. */
  readonly maxTokens?: number | undefined
  /** Whether the reply is learned from. Default true. */
  readonly learn?: boolean | undefined
}

/** A finished episode, as a memory learns from it. */
export interface RememberedEpisode {
  readonly task: unknown
  /** Its steps, with what the memory itself asked for left out. */
  readonly turns: readonly Turn[]
  readonly return: number
  readonly metrics: Readonly<Record<string, number>>
}

/** A memory of one's own. */
export const customMemory: CustomValue<Memory | HistoryFormatter> = {
  validate: (value) => {
    if (typeof value === "function") return undefined
    const { name, begin } = (value ?? {}) as Partial<Memory>
    if (typeof name === "string" && name.trim() !== "" && typeof begin === "function") return undefined
    return "must be a function history => text, or a memory: an object with name and begin"
  },
  meant: (value) => "begin" in value || "learn" in value,
}
