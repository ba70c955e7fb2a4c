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
import { type PolicyChoice, recordedCompletion } from "./policy-choice.ts"
import { type CompletionsCourse, policyCompletions } from "./policy-completions.ts"
import { playTurns } from "./turns.ts"

export { type Outcome, outcomes } from "./outcome.ts"

/** Step of an episode: one observation, completion, action and reward. One segment of a training sequence. */
export interface EpisodeStep {
  /** Observation before the action. */
  readonly observation: Observation
  /** Token ids of the prompt. */
  readonly prompt: Int32Array
  /** Token ids of the completion, [tokens]. */
  readonly completion: Int32Array
  /** Log-probability of each completion token at the time of sampling, [tokens]. */
  readonly logProbs: Float32Array
  /** Entropy in nats of the distribution of each completion token, [tokens]. Absent if the engine does not report it. */
  readonly entropies?: Float32Array
  /** 1 for forced tokens, which were inserted and not sampled, [tokens]. Absent if there are none. */
  readonly forced?: Uint8Array
  /** Text of the completion, without special tokens. */
  readonly text: string
  /** Action that was parsed from the completion. */
  readonly action: string
  /** Whether the completion could be parsed into an action. */
  readonly valid: boolean
  /** Reward of the step. */
  readonly reward: number
  /** Metrics that the environment or the agent reported at this step. */
  readonly metrics?: Readonly<Record<string, number>>
  /** Reason for the end of the completion: an end token ("stop") or the limit ("length"). */
  readonly finishReason: "stop" | "length"
  /** Attachments of the prompt (images). */
  readonly attachments?: readonly unknown[]
  /** Conversation of the step, in an episode with several. */
  readonly conversation?: string | number
  /** Agent of the step, in an episode with several. */
  readonly agent?: string | number
  /** For a step that follows an earlier completion: whether the prompt contains that completion in other tokens than were sampled. */
  readonly retokenized?: boolean
  /** Reserved: temperature of sampling, if different from that of the rollout. All steps of a rollout must have the same. */
  readonly temperature?: number
  /** Constraint of the sampling. */
  readonly constraint?: unknown
  /** Present if the completion was sampled with a hint that `prompt` does not contain. */
  readonly offPolicy?: true
  /** Score of the completion, if several candidates were sampled (`hooks.candidates`). */
  readonly score?: number
  /** Other candidates, if several were sampled. */
  readonly candidates?: readonly ScoredCandidate[]
}

/** Candidate completion: one of several completions that were sampled for the same prompt. */
export type Candidate = Pick<
  EpisodeStep,
  | "prompt"
  | "attachments"
  | "completion"
  | "logProbs"
  | "entropies"
  | "forced"
  | "text"
  | "action"
  | "valid"
  | "constraint"
>

/** Candidate completion with its score. */
export interface ScoredCandidate extends Candidate {
  /** Score of the candidate; larger is better. */
  readonly score: number
}

/** Played episode. */
export interface Episode {
  /** Steps in order. */
  readonly steps: readonly EpisodeStep[]
  /** End of the episode. */
  readonly outcome: Outcome
  /** Undiscounted sum of the rewards. */
  readonly return: number
  /** Metrics of the last step. Empty if the environment reports none. */
  readonly metrics: Readonly<Record<string, number>>
  /** Observation after the last step. Absent for a failed episode, or where not reported. */
  readonly last?: Observation
  /** Error of a failed episode. */
  readonly error?: GigpoError
  /** Number of failed attempts before this one (`rollout.maxRetries`). Absent for the first attempt. */
  readonly attempt?: number
  /** For a branch: index `of` the parent in the group, and index of the first own `step`. Earlier steps are those of the parent. */
  readonly branch?: { readonly of: number; readonly step: number }
}

/** Arguments of `streamEpisode` and `runEpisode`. */
export interface EpisodeSetup<Task = unknown> extends HookCaller {
  readonly policy: Sampler
  /** Tokenizer of the model. */
  readonly tokenizer: ChatCodec
  readonly environment: Environment<Task>
  /** Task of the episode. */
  readonly task: Task
  /** Root of all random numbers of the episode. */
  readonly random: Random
  /** Maximum length of prompt and completion together, in tokens. */
  readonly maxPositions: number
  /** Sampling temperature. */
  readonly temperature: number
  /** Maximum length of a completion in tokens. */
  readonly maxCompletionTokens: number
  /** Whether completions are sampled under `environment.completionPattern`. Default false. */
  readonly constrained?: boolean | undefined
  /** Maximum number of steps. Longer episodes are truncated. */
  readonly maxSteps: number
  /** Time limit of one call of the environment in seconds. */
  readonly environmentTimeout: number
  /** Time limit of one turn (prompt, completion and step of the environment) in seconds. Late turns fail (`ROLLOUT_TIMEOUT`). Default: none. */
  readonly turnTimeout?: number | undefined
  /** Time limit of the episode in seconds. Default: none. */
  readonly episodeTimeout?: number | undefined
  /** Hooks of the episode: start state, candidates, sampling and decisions about completions. An episode outside a group has no branches. */
  readonly hooks?: Pick<RolloutHooks<Task>, "start" | "candidates" | "sample" | "onTurn"> | undefined
  /** Maximum number of completions of one prompt that `onTurn` may reject. The next one is accepted. Default 3. */
  readonly maxResamples?: number | undefined
}

/**
 * Plays one episode. `onStep` is called after each step. Errors of the environment and timeouts give the outcome `failed`; the promise rejects
 * only for an abort of the signal and for errors of the policy or a hook.
 */
export async function runEpisode<Task>(
  setup: EpisodeSetup<Task>,
  onStep?: (step: EpisodeStep, index: number) => void,
): Promise<Episode> {
  return await runCourse(setup, {}, onStep)
}

/** Plays an episode that may branch or is a branch. Of a branch, only its own steps are reported. */
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

/** Plays one episode like `runEpisode`. Yields each step, and returns the end of the episode. */
export async function* streamEpisode<Task>(
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
    await callHook("hooks.start", within, ["start"], (context) => hooks?.start?.(task, context), checkStart)
  try {
    deadline.set("episodeTimeout", `${name}: the episode`, setup.episodeTimeout)
    const start = origin?.start ?? (await orEndRollout(begin()))
    const { maxSteps = setup.maxSteps, replay = [], ...rest } = start
    const world = (origin?.random ?? random).derive("environment")
    await using episode = await startEpisode({ ...within, random: world, ask: calls.ask })
    if (origin) checkBrought(name, origin, 0, { observation: episode.first })
    const turns: Taken[] = []
    const branchOff: CompletionsCourse["fork"] =
      fork &&
      ((at) => {
        calls.refuseForks()
        fork({ ...at, start, turns: [...turns] })
      })
    const taken = origin?.turns.map(({ choice }) => choice) ?? replay
    const choose = firstTake(taken, policyCompletions(within, { ...rest, origin, fork: branchOff }), replay.length)
    const played = playTurns(episode, choose, { maxTurns: replay.length + maxSteps })
    for (let turn = 0; ; turn++) {
      deadline.set("turnTimeout", `${name}: turn ${turn}`, setup.turnTimeout)
      const { done, value } = await deadline.unlessPassed(() => played.next())
      deadline.set("turnTimeout", "") // no timeout while the consumer handles the step
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
        ...recordedCompletion(choice as PolicyChoice),
        reward: result.reward,
        ...(result.metrics && { metrics: { ...result.metrics } }), // a copy: the environment may reuse its object
        ...(rest.offPolicy && { offPolicy: true }),
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

/** Whether an episode can be trained on: it neither failed nor was excluded. */
export function isScored({ outcome }: Pick<Episode, "outcome">): boolean {
  return outcome !== "failed" && outcome !== "excluded"
}

/** Returns the undiscounted sum of the rewards. */
export function totalReward(steps: readonly EpisodeStep[]): number {
  return steps.reduce((sum, { reward }) => sum + reward, 0)
}
