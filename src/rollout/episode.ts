import type { Sampler } from "../engine/engine.ts"
import { environmentError } from "../environment/contract.ts"
import type { Environment, Observation } from "../environment/environment.ts"
import type { GigpoError } from "../errors.ts"
import type { Random } from "../random.ts"
import type { ChatCodec } from "../tokenizer/chat-codec.ts"
import { callHook, type HookCaller } from "./call-hook.ts"
import { checkEpisodes, checkMethods, checkSampler } from "./check-setup.ts"
import { firstTake } from "./choosers.ts"
import { Deadline } from "./deadline.ts"
import { startEpisode } from "./environment-episode.ts"
import { orEndRollout, RolloutFault } from "./faults.ts"
import { checkStart } from "./hook-answers.ts"
import type { RolloutHooks } from "./hooks.ts"
import type { Outcome } from "./outcome.ts"
import { policyReplies } from "./policy-replies.ts"
import { playTurns } from "./turns.ts"

export { type Outcome, outcomes } from "./outcome.ts"

/** One observation, one model call, one action, one reward: one span of a training row. */
export interface EpisodeStep {
  readonly observation: Observation
  readonly prompt: Int32Array
  readonly reply: Int32Array
  /** Log-probability of each reply token when it was sampled. */
  readonly logProbs: Float32Array
  /** The entropy, in nats, of what each was drawn from; absent where the engine does not tell. See `Completion`. */
  readonly entropies?: Float32Array
  /** The reply as text, without special tokens. */
  readonly text: string
  readonly action: string
  /** Whether the reply was readable. */
  readonly valid: boolean
  readonly reward: number
  /** What the environment, or the agent, measured at this step, where it did. */
  readonly metrics?: Readonly<Record<string, number>>
  readonly finishReason: "stop" | "length"
  /** What came with the prompt (images). */
  readonly attachments?: readonly unknown[]
  /** Which conversation and which agent of the episode it belongs to, where there are several. */
  readonly conversation?: string | number
  readonly agent?: string | number
  /** Where it goes on from an earlier reply: whether that stands in its prompt in other tokens than were sampled. */
  readonly unmerged?: boolean
  /** Reserved: what it was sampled at, where that is not the rollout's temperature. All steps of a rollout are sampled at one. */
  readonly temperature?: number
  /** What sampling was constrained by. */
  readonly constraint?: unknown
}

export interface Episode {
  readonly steps: readonly EpisodeStep[]
  readonly outcome: Outcome
  /** Undiscounted sum of the rewards. */
  readonly return: number
  /** The last step's metrics; empty where the environment gives none. */
  readonly metrics: Readonly<Record<string, number>>
  /** What was observed after the last step; absent where the episode failed or nobody told. */
  readonly last?: Observation
  /** Why it failed. */
  readonly error?: GigpoError
  /** How many times it was played before and failed, with `rollout.retries`; absent where it is the first attempt. */
  readonly attempt?: number
}

export interface EpisodeSetup<Task = unknown> extends HookCaller {
  readonly policy: Sampler
  readonly tokenizer: ChatCodec
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
  /** Seconds for one turn: prompt, reply and the environment's step. What is late fails with ROLLOUT_TIMEOUT. Default: no limit. */
  readonly turnTimeout?: number | undefined
  /** Seconds for the whole episode. Default: no limit. */
  readonly episodeTimeout?: number | undefined
  /** Where episodes begin, and which replies are acted on. */
  readonly hooks?: Pick<RolloutHooks<Task>, "begin" | "onTurn"> | undefined
  /** Most replies to one prompt that `onTurn` may reject; the one after that is taken as it is. Default 3. */
  readonly resamples?: number | undefined
}

/**
 * Plays one episode. Rejects only when the signal is aborted, the policy fails, or a hook does; an environment's fault and a deadline
 * that passes are outcomes. `onStep` is told of every step as it happens.
 */
export async function runEpisode<Task>(
  setup: EpisodeSetup<Task>,
  onStep?: (step: EpisodeStep, index: number) => void,
): Promise<Episode> {
  const steps: EpisodeStep[] = []
  const player = playEpisode(setup)
  try {
    for (;;) {
      const { done, value } = await player.next()
      if (done) return { steps, return: totalReward(steps), ...value }
      steps.push(value)
      onStep?.(value, steps.length - 1)
    }
  } finally {
    await player.return(undefined as never) // disposes of the episode where onStep threw
  }
}

/** The same, step by step as they happen; returns how the episode ended. */
export async function* playEpisode<Task>(
  setup: EpisodeSetup<Task>,
): AsyncGenerator<EpisodeStep, Omit<Episode, "steps" | "return">, undefined> {
  checkEpisodes("An episode", setup)
  checkSampler(setup.policy, setup.tokenizer)
  checkMethods("environment", setup.environment, ["start", "prompt", "parse"])
  const { environment, task, random, hooks } = setup
  let metrics: Readonly<Record<string, number>> = {}
  using deadline = new Deadline(setup.signal)
  const within = { ...setup, signal: deadline.signal }
  try {
    deadline.set("episodeTimeout", `${environment.name}: the episode`, setup.episodeTimeout)
    const begun = callHook("hooks.begin", within, ["begin"], (context) => hooks?.begin?.(task, context), checkStart)
    const { maxSteps = setup.maxSteps, replay = [], hint } = await orEndRollout(begun)
    await using episode = await startEpisode({ ...within, random: random.fork("environment") })
    const choose = firstTake(replay, policyReplies(within, hint))
    const turns = playTurns(episode, choose, { maxTurns: replay.length + maxSteps })
    for (let turn = 0; ; turn++) {
      deadline.set("turnTimeout", `${environment.name}: turn ${turn}`, setup.turnTimeout)
      const { done, value } = await deadline.unlessPassed(() => turns.next())
      deadline.set("turnTimeout", "") // whoever is told of the step has time
      if (done) return { ...value, metrics }
      const { observation, choice, result } = value
      metrics = result.metrics ?? metrics
      if (!("completion" in choice)) continue // replayed
      const { prompt, completion, reply, action, valid } = choice
      yield {
        observation,
        prompt: prompt.tokens,
        reply: completion.tokens,
        logProbs: completion.logProbs,
        ...(completion.entropies && { entropies: completion.entropies }),
        text: reply,
        action,
        valid,
        reward: result.reward,
        ...(result.metrics && { metrics: { ...result.metrics } }), // its own object may be counted on
        finishReason: completion.finishReason,
        ...(prompt.attachments && { attachments: prompt.attachments }),
      }
    }
  } catch (error) {
    if (deadline.passed) return { outcome: "failed", metrics, error: deadline.passed }
    setup.signal?.throwIfAborted()
    if (error instanceof RolloutFault) throw error.cause
    return { outcome: "failed", metrics, error: environmentError(environment.name, error) }
  }
}

/** Whether an episode can be learned from: it neither failed nor was dropped. */
export function isScored({ outcome }: Pick<Episode, "outcome">): boolean {
  return outcome !== "failed" && outcome !== "dropped"
}

/** Undiscounted. */
export function totalReward(steps: readonly EpisodeStep[]): number {
  return steps.reduce((sum, { reward }) => sum + reward, 0)
}
