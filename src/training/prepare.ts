import type { Critic, FrozenWeights, ModelStore, Teacher, Trainable } from "../engine/engine.ts"
import type { Environment } from "../environment/environment.ts"
import { checkArguments } from "../options/arguments.ts"
import { without } from "../options/fixed.ts"
import { readOptions } from "../options/read.ts"
import { scheduleValue } from "../options/schedule.ts"
import { checkLengths, checkPlayers } from "../rollout/check-setup.ts"
import type { RolloutHooks, TaskSource } from "../rollout/hooks.ts"
import type { AgentLoop } from "../rollout/play.ts"
import type { Saved } from "../runs/checkpoint.ts"
import { runDate } from "../runs/date.ts"
import type { Run } from "../runs/run.ts"
import { digestTasks } from "../runs/same-environment.ts"
import { type Parts, remember } from "../runs/snapshot.ts"
import type { ChatCodec } from "../tokenizer/chat-codec.ts"
import { GigpoError } from "../util/errors.ts"
import { Random } from "../util/random.ts"
import { warner } from "../util/warn.ts"
import { runsItself, statisticsOf } from "./accumulate.ts"
import { checkGroups, checkTogether } from "./check-options.ts"
import { checkModel, checkObservers, checkTeacher } from "./check-setup.ts"
import { joinHooks } from "./curriculum/join-hooks.ts"
import { openCurriculum, steer } from "./curriculum/steer.ts"
import { type Credited, makeCredited, makeCurriculum, makeTurns, needsReference } from "./make.ts"
import type { RunObserver } from "./observers.ts"
import { type TrainOptions, trainFields } from "./options.ts"
import type { AgentSetup } from "./player.ts"
import type { Progress } from "./progress.ts"
import { ReturnScale } from "./return-scale.ts"
import { adamwAt } from "./schedule.ts"
import { chosenRates, resolveLearningRates, type SettledTrainOptions } from "./settle-rates.ts"
import { mostCheckpoints } from "./whole-run.ts"

/** What training works with. An agent may play what the environment, or whoever has tasks, offers. */
export interface TrainSetup<Task = unknown> extends Around<Task>, AgentSetup<Task> {}

/** The same, whoever plays. */
export interface PlayedSetup<Task = unknown> extends Around<Task> {
  /** What is played; may be left out where `play` plays and `tasks` gives the tasks. */
  readonly environment?: Environment<Task> | undefined
}

interface Around<Task> extends TrainOptions {
  readonly policy: Trainable
  readonly tokenizer: ChatCodec
  /** Whose log-probabilities of what was sampled the loss or the estimator reads; it has the same tokens as the policy. */
  readonly teacher?: Teacher | undefined
  /** Plays the episodes in place of the package's own loop: an agent that calls the policy as it likes. */
  readonly play?: AgentLoop<Task> | undefined
  /** Where tasks come from. Default: the environment's order. */
  readonly tasks?: TaskSource<Task> | undefined
  /** What tasks are is said by those who have and play them: hooks of any task go with tasks of one kind. */
  readonly hooks?: RolloutHooks<NoInfer<Task>> | undefined
  /** Where metrics and checkpoints go; without it nothing is written. */
  readonly run?: Run | undefined
  readonly observers?: readonly RunObserver[] | undefined
  readonly signal?: AbortSignal | undefined
  /** Whether signals save the run before they end the process. Default true. */
  readonly handleSignals?: boolean | undefined
  /** Told often how far the work is. */
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /** Told what is odd but no reason to stop. Default: a warning of Node.js. */
  readonly onWarning?: ((message: string) => void) | undefined
}

/** A training whose every setting has been looked at, and nothing touched. */
export interface Training<Task = unknown>
  extends Learning,
    Omit<PlayedSetup<Task>, keyof TrainOptions | keyof Learning> {
  readonly onWarning: (message: string) => void
  readonly parts: Parts
  /** What goes into its checkpoints, where the engine can be saved. */
  readonly saved: Saved | undefined
}

/** The part of it that knows nothing of tasks. */
export interface Learning
  extends Credited,
    Pick<PlayedSetup, "policy" | "tokenizer" | "teacher" | "signal" | "onProgress"> {
  readonly options: SettledTrainOptions
  /** There once the run has begun, where the estimator needs its values. */
  readonly critic?: Critic | undefined
  /** The units that it predicts in. */
  readonly scale?: ReturnScale | undefined
}

/**
 * Checks all that can be checked before anything is touched.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an option, or for what the engine cannot do; `BAD_TOKENIZER`.
 */
export async function prepare<Task>(all: PlayedSetup<Task>): Promise<Training<Task>> {
  checkArguments("train", all)
  const {
    policy,
    tokenizer,
    teacher,
    environment,
    play,
    tasks,
    hooks: given,
    run,
    observers,
    signal,
    onProgress: _,
    onWarning: _onWarning,
    ...set
  } = all
  const onWarning = warner(all.onWarning)
  const setup = { ...without(all, ...(Object.keys(set) as (keyof TrainOptions)[])), onWarning }
  const resolved = readOptions("train", set, trainFields)
  checkModel("train", policy, tokenizer)
  const options = resolveLearningRates(resolved, policy, run?.settled)
  checkObservers(observers)
  checkPlayers({ environment, play, hooks: given, tasks })
  const turns = makeTurns(options.turnHooks)
  const hooks = joinHooks<Task>(turns, given)
  const { rollout, seed, groups } = options
  const curriculum = openCurriculum(makeCurriculum(options.curriculum), { environment, rollout, seed, groups })
  const steered = steer(curriculum, { hooks, tasks })
  if (turns || curriculum) checkPlayers({ environment, play, ...steered })
  if (!environment && options.evaluation.every > 0)
    throw bad("An evaluation needs an environment, for its held-out tasks: give one, or set evaluation.every to 0.")
  checkTogether(options)
  const longest = policy.longestRow || policy.maxPositions
  const limits = {
    maxCompletionTokens: rollout.maxCompletionTokens,
    maxPositions: Math.min(policy.maxPositions, longest),
    play,
  }
  checkLengths(limits, "rollout.maxCompletionTokens")
  const { estimator, loss, kl, needs } = makeCredited(options)
  checkGroups(estimator, options, onWarning)
  if (needs.has("value") && !policy.critic)
    throw bad(
      `${estimator.name} needs a critic, which this engine cannot train: take an estimator that needs no values.`,
    )
  if (needsReference(needs) && !policy.reference)
    throw bad(
      estimator.needs?.includes("reference") || needs.has("hellinger")
        ? `${needs.has("hellinger") ? loss.name : estimator.name} needs a frozen reference, which this engine cannot keep.`
        : "The KL needs a frozen reference, which this engine cannot keep: set loss.klWeight to 0.",
    )
  checkTeacher(teacher, tokenizer, needs, estimator.needs?.includes("teacher") ? estimator.name : loss.name)
  if (run && !policy.store) throw bad("This engine cannot be saved: train without a run.")

  if (run && run.iteration > options.iterations)
    throw bad(
      `${run.iteration} iterations are done already: set iterations to that at least, not to ${options.iterations}.`,
    )

  const start = { iteration: 0, iterations: options.iterations }
  // Weights of tokens are beyond the built-in losses' kernels.
  const weighs = options.importance || options.tokenWeights || options.teacherWeights
  const native = weighs ? undefined : runsItself(policy, loss.native?.(start))
  const refusals = await policy.check({
    loss: native ?? "linear",
    entropyCoefficients: !native && needs.has("entropy"),
    statistics: [...new Set([...statisticsOf(loss), ...(needs.has("entropy") ? (["entropy"] as const) : [])])],
    models: needsReference(needs) ? ["reference"] : [],
    optimizer: adamwAt(options.optimizer, { index: 0, total: options.iterations, perIteration: 1 }),
    manySpans: true, // conversations that grow become one row
    critic: needs.has("value"),
    checkpoints: run !== undefined,
    temperature: scheduleValue(options.rollout.temperature, start),
  })
  if (refusals.length > 0) throw bad(`The engine cannot train this. ${refusals.join(" ")}`)
  const scale = needs.has("value") ? new ReturnScale() : undefined
  const parts = {
    estimator,
    loss,
    ...(kl.controller && {
      klWeight: { name: "adaptive-kl", state: kl.controller.state, restore: kl.controller.restore },
    }),
    ...(scale && { "critic-units": scale }),
    ...(given && { hooks: given }),
    ...(turns && { turns }),
    ...(tasks && { tasks }),
    ...(curriculum && { curriculum: curriculum.part }),
    ...(environment?.memory && !play && { memory: environment.memory }),
  }
  remember(parts) // refuses states that cannot be saved
  // A run without a checkpoint begins again with what the policy is, so that this must be the same, too.
  const reference = needsReference(needs) || run?.checkpoint === undefined
  const frozen = run && (await frozenOf(policy, needs.has("teacher") ? teacher : undefined, reference, signal))
  const critic = needs.has("value") ? async () => storeOf(await policy.critic!()) : undefined
  const taskFiles = run && (await digestTasks(environment?.taskFiles))
  const kept = { environment: environment?.name, taskFiles, files: tokenizer.files ?? [], parts, frozen }
  const saved = policy.store && { store: policy.store, critic, ...kept }
  const asked = { call: "train", section: "training", fields: trainFields, resolved } as const
  const settled = chosenRates(resolved, options, needs.has("value"))
  const promptDate = await runDate(tokenizer, run)
  if (saved) await run?.check({ ...saved, settled, promptDate, asked, room: mostCheckpoints(options) })
  return { ...setup, ...steered, options, estimator, loss, kl, needs, scale, parts, saved }
}

/** The digests of all that a run depends on and its checkpoints do not hold. */
async function frozenOf(
  policy: Trainable,
  teacher: Teacher | undefined,
  reference: boolean,
  signal: AbortSignal | undefined,
): Promise<FrozenWeights | undefined> {
  const own = await policy.frozen?.({ reference, signal })
  const taught = await teacher?.frozen?.({ reference: true, signal })
  return taught?.reference === undefined ? own : { ...own, teacher: taught.reference }
}

function storeOf({ store }: Critic): ModelStore {
  if (store) return store
  throw bad("This engine's critic cannot be saved: train without a run.")
}

/** Everything random of one iteration. */
export function iterationRandom(
  { options }: { readonly options: { readonly seed: number } },
  iteration: number,
): Random {
  return new Random(options.seed).fork("iteration", iteration)
}

function bad(message: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", message)
}
