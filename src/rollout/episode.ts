import type { Policy } from "../engine/engine.ts"
import type { Environment, EnvironmentEpisode, Observation, Turn } from "../environment/environment.ts"
import type { GigpoError } from "../errors.ts"
import type { Random } from "../random.ts"
import type { Tokenizer } from "../tokenizer/tokenizer.ts"
import { checkMessages, checkParsed, environmentError } from "./contract.ts"
import { startEpisode } from "./environment-episode.ts"

/** One observation, one model call, one action, one reward: one training row. */
export interface EpisodeStep {
  readonly observation: Observation
  readonly prompt: Int32Array
  readonly reply: Int32Array
  /** Log-probability of each reply token when it was sampled. */
  readonly logProbs: Float32Array
  /** The reply as text, without special tokens. */
  readonly text: string
  readonly action: string
  /** Whether the reply was readable. */
  readonly valid: boolean
  readonly reward: number
  readonly finishReason: "stop" | "length"
}

/**
 * - `terminated`, `truncated`: as the environment said; also `truncated` after `maxSteps`.
 * - `overflow`: the next prompt and reply would not fit the model; the steps before it count.
 * - `failed`: the environment threw, hung or broke its contract; counted, and left out of the loss.
 */
export type Outcome = "terminated" | "truncated" | "overflow" | "failed"

export interface Episode {
  readonly steps: readonly EpisodeStep[]
  readonly outcome: Outcome
  /** Undiscounted sum of the rewards. */
  readonly return: number
  /** The last step's metrics; empty where the environment gives none. */
  readonly metrics: Readonly<Record<string, number>>
  /** Why it failed. */
  readonly error?: GigpoError
}

export interface EpisodeSetup<Task = unknown> {
  readonly policy: Policy
  readonly tokenizer: Tokenizer
  readonly environment: Environment<Task>
  readonly task: Task
  /** Keys everything random in this episode. */
  readonly random: Random
  /** Longest prompt and reply together. */
  readonly maxPositions: number
  readonly temperature: number
  readonly maxReplyTokens: number
  /** Steps after which the episode is cut off. */
  readonly maxSteps: number
  /** Seconds for one call of the environment. */
  readonly environmentTimeout: number
  readonly signal?: AbortSignal
}

/** Plays one episode. Rejects only when the signal is aborted or the policy fails; an environment's fault is an outcome. */
export async function runEpisode<Task>(setup: EpisodeSetup<Task>): Promise<Episode> {
  const steps: EpisodeStep[] = []
  const player = playEpisode(setup)
  for (;;) {
    const { done, value } = await player.next()
    if (done) return { steps, return: steps.reduce((sum, step) => sum + step.reward, 0), ...value }
    steps.push(value)
  }
}

/** The same, step by step as they happen; returns how the episode ended. */
export async function* playEpisode<Task>(
  setup: EpisodeSetup<Task>,
): AsyncGenerator<EpisodeStep, Omit<Episode, "steps" | "return">, undefined> {
  const { environment, policy, tokenizer, task, random, signal, temperature, maxReplyTokens } = setup
  const { name } = environment
  let episode: EnvironmentEpisode | undefined
  let metrics: Readonly<Record<string, number>> = {}
  const history: Turn[] = []
  try {
    episode = await startEpisode({ ...setup, random: random.fork("environment") })
    let observation = episode.first
    for (let index = 0; index < setup.maxSteps; index++) {
      const prompt = await tokenizer.encodeChat(checkMessages(name, environment.prompt(task, history, observation)))
      if (prompt.length + maxReplyTokens > setup.maxPositions) return { outcome: "overflow", metrics }
      const completion = await fromPolicy(
        policy.sample({
          prompt,
          maxTokens: maxReplyTokens,
          temperature,
          stopTokens: tokenizer.eosTokens,
          key: random.fork("reply", index).key,
          ...(signal && { signal }),
        }),
      )
      const text = tokenizer.decode(completion.tokens, { skipSpecial: true })
      const { action, valid } = checkParsed(name, environment.parse(text, observation))
      const result = await episode.step(action)
      metrics = result.metrics ?? metrics
      yield {
        observation,
        prompt,
        reply: completion.tokens,
        logProbs: completion.logProbs,
        text,
        action,
        valid,
        reward: result.reward,
        finishReason: completion.finishReason,
      }
      if (result.terminated) return { outcome: "terminated", metrics }
      if (result.truncated) return { outcome: "truncated", metrics }
      history.push({ observation, reply: text, action })
      observation = result.observation
    }
    return { outcome: "truncated", metrics }
  } catch (error) {
    signal?.throwIfAborted()
    if (error instanceof PolicyFailure) throw error.cause
    return { outcome: "failed", metrics, error: environmentError(name, error) }
  } finally {
    await episode?.[Symbol.asyncDispose]()
  }
}

/** Tells the policy's faults, which end the run, from the environment's, which end an episode. */
class PolicyFailure extends Error {}

async function fromPolicy<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (cause) {
    throw new PolicyFailure("the policy failed", { cause })
  }
}
