import type { Sampler } from "../engine/engine.ts"
import { environmentError } from "../environment/contract.ts"
import type { Environment, Observation } from "../environment/environment.ts"
import type { ChatCodec } from "../tokenizer/chat-codec.ts"
import type { GigpoError } from "../util/errors.ts"
import type { Random } from "../util/random.ts"
import { type Course, checkBrought, type Taken } from "./branches.ts"
import { callHook, type HookCaller } from "./call-hook.ts"
import { checkEpisodes, checkMethods, checkSampler } from "./check-setup.ts"
import { firstTake } from "./choosers.ts"
import { Deadline } from "./deadline.ts"
import { startEpisode } from "./environment-episode.ts"
import { orEndRollout, RolloutFault } from "./faults.ts"
import { checkStart } from "./hook-answers.ts"
import type { RolloutHooks } from "./hooks.ts"
import { MemoryCalls } from "./memory-calls.ts"
import type { Outcome } from "./outcome.ts"
import { type PolicyChoice, recordedReply } from "./policy-choice.ts"
import { policyReplies, type RepliesCourse } from "./policy-replies.ts"
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
  /** [tokens] 1 for a token that was put there and not sampled; absent where there is none. See `SampledReply`. */
  readonly forced?: Uint8Array
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
  /** Sampled with more in the prompt than `prompt` holds (a hint). */
  readonly offPolicy?: true
  /** Where several replies were sampled to the prompt (`hooks.candidates`): what this one is worth, and the others. */
  readonly score?: number
  readonly candidates?: readonly ScoredCandidate[]
}

/** A reply that might be acted on. */
export type Candidate = Pick<
  EpisodeStep,
  "prompt" | "attachments" | "reply" | "logProbs" | "entropies" | "forced" | "text" | "action" | "valid"
>

/** Candidate completion with its score. */
export interface ScoredCandidate extends Candidate {
  readonly score: number
}

/** One played episode. */
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
  /** How many times it was played before and failed, with `rollout.maxRetries`; absent where it is the first attempt. */
  readonly attempt?: number
  /** Where it branched off another one: that one's number in its group, and the first step that is not the other's. Earlier ones are the same objects. */
  readonly branch?: { readonly of: number; readonly step: number }
}

/** Arguments of `playEpisode` and `runEpisode`. */
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
  readonly maxCompletionTokens: number
  /** Steps after which the episode is cut off. */
  readonly maxSteps: number
  /** Seconds for one call of the environment. */
  readonly environmentTimeout: number
  /** Seconds for one turn: prompt, reply and the environment's step. What is late fails with ROLLOUT_TIMEOUT. Default: no limit. */
  readonly turnTimeout?: number | undefined
  /** Seconds for the whole episode. Default: no limit. */
  readonly episodeTimeout?: number | undefined
  /** Where episodes begin, how replies are sampled, and which are acted on. An episode that is played alone has no branches. */
  readonly hooks?: Pick<RolloutHooks<Task>, "begin" | "candidates" | "sample" | "onTurn"> | undefined
  /** Most replies to one prompt that `onTurn` may reject; the one after that is taken as it is. Default 3. */
  readonly maxResamples?: number | undefined
}

/**
 * Plays one episode. Rejects only when the signal is aborted, the policy fails, or a hook does; an environment's fault and a deadline
 * that passes are outcomes. `onStep` is told of every step as it happens.
 */
export async function runEpisode<Task>(
  setup: EpisodeSetup<Task>,
  onStep?: (step: EpisodeStep, index: number) => void,
): Promise<Episode> {
  return await runCourse(setup, {}, onStep)
}

/** The same of one that may branch, or is a branch, of which only its own steps are told. */
export async function runCourse<Task>(
  setup: EpisodeSetup<Task>,
  course: Course,
  onStep?: (step: EpisodeStep, index: number) => void,
): Promise<Episode> {
  const steps = [...(course.origin?.steps ?? [])]
  const player = playCourse(setup, course)
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
  return yield* playCourse(setup, {})
}

async function* playCourse<Task>(
  setup: EpisodeSetup<Task>,
  { origin, fork }: Course,
): AsyncGenerator<EpisodeStep, Omit<Episode, "steps" | "return">, undefined> {
  checkEpisodes("An episode", setup)
  checkSampler(setup.policy, setup.tokenizer)
  checkMethods("environment", setup.environment, ["start", "prompt", "parse"])
  const { environment, task, random, hooks } = setup
  const { name } = environment
  let metrics: Readonly<Record<string, number>> = {}
  using deadline = new Deadline(setup.signal)
  const within = { ...setup, signal: deadline.signal }
  const calls = new MemoryCalls(within)
  const begin = async () =>
    await callHook("hooks.begin", within, ["begin"], (context) => hooks?.begin?.(task, context), checkStart)
  try {
    deadline.set("episodeTimeout", `${name}: the episode`, setup.episodeTimeout)
    const start = origin?.start ?? (await orEndRollout(begin()))
    const { maxSteps = setup.maxSteps, replay = [], ...said } = start
    const world = (origin?.random ?? random).fork("environment")
    await using episode = await startEpisode({ ...within, random: world, ask: calls.ask })
    if (origin) checkBrought(name, origin, 0, { observation: episode.first })
    const turns: Taken[] = []
    const branchOff: RepliesCourse["fork"] =
      fork &&
      ((at) => {
        calls.refuseForks()
        fork({ ...at, start, turns: [...turns] })
      })
    const taken = origin?.turns.map(({ choice }) => choice) ?? replay
    const choose = firstTake(taken, policyReplies(within, { ...said, origin, fork: branchOff }), replay.length)
    const played = playTurns(episode, choose, { maxTurns: replay.length + maxSteps })
    for (let turn = 0; ; turn++) {
      deadline.set("turnTimeout", `${name}: turn ${turn}`, setup.turnTimeout)
      const { done, value } = await deadline.unlessPassed(() => played.next())
      deadline.set("turnTimeout", "") // whoever is told of the step has time
      yield* calls.take()
      if (done) return { ...value, metrics }
      const { observation, choice, result } = value
      metrics = result.metrics ?? metrics
      turns.push({ observation, choice })
      if (turn < taken.length) {
        if (origin) checkBrought(name, origin, turn + 1, result)
        continue
      }
      yield {
        observation,
        ...recordedReply(choice as PolicyChoice),
        reward: result.reward,
        ...(result.metrics && { metrics: { ...result.metrics } }), // its own object may be counted on
        ...(said.offPolicy && { offPolicy: true }),
      }
    }
  } catch (error) {
    if (deadline.passed) return { outcome: "failed", metrics, error: deadline.passed }
    setup.signal?.throwIfAborted()
    const fault = error instanceof RolloutFault ? error : calls.fault
    if (fault) throw fault.cause
    return { outcome: "failed", metrics, error: environmentError(name, error) }
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
