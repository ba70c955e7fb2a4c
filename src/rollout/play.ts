import type { Sampler } from "../engine/engine.ts"
import type { Message, Observation, ParsedAction } from "../environment/environment.ts"
import type { EncodedImage } from "../images/image.ts"
import type { ChatCodec } from "../tokenizer/chat-codec.ts"
import type { Random } from "../util/random.ts"

// Interface of agent loops, which run episodes with their own tools, conversations and agents instead of the loop of an environment.

/**
 * Agent loop: a function that plays one episode of a task. Completions are recorded by `sample` or `record`. null excludes the episode, which cannot
 * be scored. An error fails the episode.
 *
 * The rollout waits for all episodes within `rollout.turnTimeout` (between the requests or records of two steps), `episodeTimeout` and
 * `groupTimeout`. Respect `signal`, and set time limits for tools and other services. For reproducible runs, the order of calls must not depend on
 * timing, or must be given by `order`.
 */
export type AgentLoop<Task = unknown> = (context: AgentLoopContext<Task>) => Promise<EpisodeEnd | null>

/** Context of an agent loop: the task and the means to play it. */
export interface AgentLoopContext<Task = unknown> {
  /** Task of the episode. */
  readonly task: Task
  /** Index of the task in the iteration, from 0. */
  readonly index: number
  /** Index of the episode in the group, from 0. */
  readonly member: number
  /** Random numbers of the agent in this episode. */
  readonly random: Random
  /** Signal that is aborted when the episode is to end. */
  readonly signal: AbortSignal
  /** Sampler for completions that are recorded with `record`. These must be sampled at `temperature`. */
  readonly policy: Sampler
  /** Tokenizer of the model. */
  readonly tokenizer: ChatCodec
  /** Maximum length of prompt and completion together, in tokens. */
  readonly maxPositions: number
  /** Sampling temperature of the rollout. */
  readonly temperature: number
  /** Maximum length of a completion in tokens. */
  readonly maxCompletionTokens: number
  /**
   * Samples a completion for messages and records a step. Steps are in the order of the calls, which also keys the random numbers; calls may run
   * concurrently. Throws for a prompt that does not fit the model with its completion, and for a step beyond `maxSteps`. If the agent ends with this
   * error, the outcome is "overflow" or "truncated" and the earlier steps count.
   */
  sample(messages: readonly Message[], options?: SampleOptions): Promise<SampledAction>
  /**
   * Reserves the index of a step that will be recorded with `record`. Steps are in the order of reservation. Throws beyond `maxSteps`, like
   * `sample`.
   */
  reserve(): number
  /** Records a step that was sampled elsewhere, at a reserved index or after all others. Returns the index of the step. */
  record(step: StepInput, place?: number): number
  /** Sets the reward of a step by index. */
  reward(step: number, value: number): void
}

/** Options of `sample` in an agent loop. */
export interface SampleOptions {
  /** Conversation of the step, in an episode with several. */
  readonly conversation?: string | number | undefined
  /** Agent of the step, in an episode with several. */
  readonly agent?: string | number | undefined
  /** Anchor state of the step. Default: the prompt. */
  readonly anchor?: string | undefined
  /** Text of the observation. Default: the last message. */
  readonly observation?: string | undefined
  /** Maximum length of the completion in tokens. Default: `maxCompletionTokens` of the rollout. */
  readonly maxTokens?: number | undefined
  /** Tokens that end the completion. Default: the end tokens of the tokenizer. */
  readonly stopTokens?: readonly number[] | undefined
  /** Parses the action from a completion. Default: the whole completion, which is valid. */
  readonly parse?: ((completion: string) => ParsedAction) | undefined
}

/** Completion that an agent loop has sampled. */
export interface SampledAction extends ParsedAction {
  /** Index of the step in the episode. */
  readonly step: number
  /** Text of the completion, without special tokens. */
  readonly text: string
  /** Token ids of the completion. */
  readonly tokens: Int32Array
  /** Reason for the end of the completion: an end token ("stop") or the limit ("length"). */
  readonly finishReason: "stop" | "length"
}

/** Step that an agent loop records with `record`. */
export interface StepInput {
  /** Token ids of the prompt. */
  readonly prompt: Int32Array
  /** Token ids of the completion. */
  readonly completion: Int32Array
  /** Log-probability of each completion token at the time of sampling, [tokens]. */
  readonly logProbs: Float32Array
  /** Entropy in nats of the distribution of each completion token, [tokens], if known. */
  readonly entropies?: Float32Array | undefined
  /** Anchor state. Default: the prompt. */
  readonly anchor?: string | undefined
  /** Text of the observation. Default "". */
  readonly observation?: string | undefined
  /** Pictures of the observation, for recordings. */
  readonly images?: readonly EncodedImage[] | undefined
  /** Text of the completion. Default: the decoded tokens. */
  readonly text?: string | undefined
  /** Action. Default: the text. */
  readonly action?: string | undefined
  /** Whether the completion could be parsed into an action. Default true. */
  readonly valid?: boolean | undefined
  /** Reward. Default 0. */
  readonly reward?: number | undefined
  /** Metrics of the step, for example several kinds of rewards. */
  readonly metrics?: Readonly<Record<string, number>> | undefined
  /** Reason for the end of the completion. Default "stop". */
  readonly finishReason?: "stop" | "length" | undefined
  /** Images of the prompt, as `encodeChat` of the tokenizer gives them. */
  readonly attachments?: readonly unknown[] | undefined
  /** Conversation of the step. Prompts of one conversation that extend each other become one sequence. Default: none. */
  readonly conversation?: string | number | undefined
  /** Agent of the step, in an episode with several. Default: none. */
  readonly agent?: string | number | undefined
  /**
   * Alternative to `conversation`: index of the step that this step follows; null for the start of a conversation. If several steps follow the same
   * step, the first continues its conversation and the others start new ones.
   */
  readonly follows?: number | null | undefined
  /** Whether the prompt contains an earlier completion in other tokens than were sampled. Counted in `sequence/retokenized`. */
  readonly retokenized?: boolean | undefined
  /** Sort key of the step in the episode. Steps with equal keys are in the order of reservation. Default "". */
  readonly order?: string | undefined
  /** Reserved: temperature of sampling. Must be that of the rollout. */
  readonly temperature?: number | undefined
  /** Constraint of the sampling, in the engine's own form. Default: none. */
  readonly constraint?: unknown
}

/** End of an episode, as an agent loop returns it. */
export interface EpisodeEnd {
  /** Outcome. Default "terminated". */
  readonly outcome?: "terminated" | "truncated" | undefined
  /** Rewards by step index, including steps whose sampling failed. Default: the recorded rewards. */
  readonly rewards?: readonly number[] | undefined
  /** Number that is added to the reward of the last step. */
  readonly reward?: number | undefined
  /** Metrics of the episode. */
  readonly metrics?: Readonly<Record<string, number>> | undefined
  /** Observation after the last step. */
  readonly last?: Observation | undefined
}
