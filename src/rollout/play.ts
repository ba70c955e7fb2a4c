import type { Sampler } from "../engine/engine.ts"
import type { Message, Observation, ParsedAction } from "../environment/environment.ts"
import type { ChatCodec } from "../tokenizer/chat-codec.ts"
import type { Random } from "../util/random.ts"

// The seam of agents that play by themselves: their own loop, tools, conversations and agents, in place of an environment's loop.

/**
 * Plays one episode of a task. What the policy says on the way is recorded, by `sample` or by `record`; null says that the episode
 * cannot be scored. A throw costs the episode. A rollout waits for all of its episodes, for as long as `rollout.turnTimeout` (from one
 * step's being asked for or recorded to the next's), `episodeTimeout` and `groupTimeout` let it: heed `signal`, and set limits of
 * your own for tools and other services. Where the recorded steps are to be the same in every run, the
 * order of the calls must not depend on which of them answers first, or be told (`order`).
 */
export type AgentLoop<Task = unknown> = (context: AgentLoopContext<Task>) => Promise<EpisodeEnd | null>

/** Task of one episode, with what a custom player needs to play it. */
export interface AgentLoopContext<Task = unknown> {
  readonly task: Task
  /** The task's number in its iteration, and the episode's in its group, from 0. */
  readonly index: number
  readonly member: number
  /** The agent's own random numbers in this episode. */
  readonly random: Random
  /** Aborted when the episode is no longer wanted. */
  readonly signal: AbortSignal
  /** For completions that are recorded by hand, which must be sampled at `temperature`, or not at all. */
  readonly policy: Sampler
  readonly tokenizer: ChatCodec
  readonly maxPositions: number
  readonly temperature: number
  readonly maxCompletionTokens: number
  /**
   * Samples a reply to these messages and records it as a step. The step's place, and with it the reply's random numbers, is that
   * of the call: calls may run side by side and end in any order. A prompt that does not fit the model with its reply, or a step
   * beyond `maxSteps`, throws; where that ends the agent, the episode ends as "overflow" or "truncated" and its steps count.
   */
  sample(messages: readonly Message[], options?: SampleOptions): Promise<SampleReply>
  /**
   * The place of a step that is about to be sampled otherwise, for `record`: steps stand in the order in which they were asked for. Throws
   * beyond `maxSteps`, as `sample` does.
   */
  reserve(): number
  /** Records a step that was sampled otherwise, at a place that was reserved or behind all others; returns its number. */
  record(step: RecordedStep, place?: number): number
  /** Sets the reward of a step, by its number. */
  reward(step: number, value: number): void
}

/** Options of one `sample` call of a custom player. */
export interface SampleOptions {
  /** Which conversation and which agent of the episode it belongs to, where there are several. */
  readonly conversation?: string | number | undefined
  readonly agent?: string | number | undefined
  /** Identifies the state that the reply is given in. Default: the prompt itself. */
  readonly anchor?: string | undefined
  /** What is observed. Default: the last message. */
  readonly observation?: string | undefined
  /** Default: the rollout's `maxCompletionTokens`. */
  readonly maxTokens?: number | undefined
  /** Default: those of the tokenizer that end a turn. */
  readonly stopTokens?: readonly number[] | undefined
  /** Reads the action. By default the whole reply is one, and valid. */
  readonly parse?: ((reply: string) => ParsedAction) | undefined
}

/** One completion that a custom player has sampled. */
export interface SampleReply extends ParsedAction {
  /** The step's number in the episode. */
  readonly step: number
  readonly text: string
  readonly tokens: Int32Array
  readonly finishReason: "stop" | "length"
}

/** What must be known of a step to learn from it. */
export interface RecordedStep {
  readonly prompt: Int32Array
  readonly reply: Int32Array
  /** Log-probability of each reply token when it was sampled. */
  readonly logProbs: Float32Array
  /** The entropy, in nats, of what each was drawn from, where that is known; see `Completion`. */
  readonly entropies?: Float32Array | undefined
  /** Default: the prompt itself. */
  readonly anchor?: string | undefined
  /** What was observed. Default "". */
  readonly observation?: string | undefined
  /** The reply as text. Default: its tokens, decoded. */
  readonly text?: string | undefined
  /** Default: the text. */
  readonly action?: string | undefined
  /** Default true. */
  readonly valid?: boolean | undefined
  /** Default 0. */
  readonly reward?: number | undefined
  /** What was measured at this step: rewards of several kinds, say. */
  readonly metrics?: Readonly<Record<string, number>> | undefined
  /** Default "stop". */
  readonly finishReason?: "stop" | "length" | undefined
  readonly attachments?: readonly unknown[] | undefined
  readonly conversation?: string | number | undefined
  readonly agent?: string | number | undefined
  /**
   * In place of `conversation`: the number of the step that it goes on from, null where it begins. Steps that go on from one another
   * are a conversation; of several that go on from the same step the first goes on with it, and each other begins its own.
   */
  readonly follows?: number | null | undefined
  /** Whether the prompt holds an earlier reply in other tokens than were sampled; counted in `sequence/unmerged`. */
  readonly unmerged?: boolean | undefined
  /** An episode's steps stand in the order of these texts, and where they are equal as they were asked for. Default "". */
  readonly order?: string | undefined
  /** Reserved: what it was sampled at. Any other than the rollout's is refused, since a batch is learned from at one temperature. */
  readonly temperature?: number | undefined
  readonly constraint?: unknown
}

/** How an episode ended. */
export interface EpisodeEnd {
  /** Default "terminated". */
  readonly outcome?: "terminated" | "truncated" | undefined
  /** Rewards by the numbers of the steps, those whose sampling failed included. Default: what was recorded. */
  readonly rewards?: readonly number[] | undefined
  /** Added to the last step's reward. */
  readonly reward?: number | undefined
  readonly metrics?: Readonly<Record<string, number>> | undefined
  /** What was observed after the last step. */
  readonly last?: Observation | undefined
}
