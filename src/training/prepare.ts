import type { Critic, FrozenWeights, ModelStore, Teacher, Trainable } from "../engine/engine.ts"
import type { Environment } from "../environment/environment.ts"
import { checkArguments } from "../options/arguments.ts"
import { without } from "../options/fixed.ts"
import { readOptions } from "../options/read.ts"
import { checkLengths, checkPlayers } from "../rollout/check-setup.ts"
import { provided } from "../rollout/hooks/provided.ts"
import type { RolloutHooks, TaskSource } from "../rollout/hooks.ts"
import type { AgentLoop } from "../rollout/play.ts"
import type { Saved } from "../runs/checkpoint.ts"
import { runDate } from "../runs/date.ts"
import type { Run } from "../runs/run.ts"
import { digestTasks } from "../runs/same-environment.ts"
import { type Part, type Parts, remember } from "../runs/snapshot.ts"
import type { ChatCodec } from "../tokenizer/chat-codec.ts"
import { GigpoError } from "../util/errors.ts"
import { Random } from "../util/random.ts"
import { warner } from "../util/warn.ts"
import { checkGroups, checkSnapshots, checkTogether } from "./check-options.ts"
import { checkModel, checkObservers, checkTeacher } from "./check-setup.ts"
import { joinHooks } from "./curriculum/join-hooks.ts"
import { openCurriculum, steer } from "./curriculum/steer.ts"
import { longestSequence } from "./longest-sequence.ts"
import { type Credited, makeCredited, makeCurriculum, makeTurns, needsReference } from "./make.ts"
import type { RunObserver } from "./observers.ts"
import { type TrainOptions, trainFields } from "./options.ts"
import { checkModels, checkPlan, planOf } from "./plan.ts"
import type { AgentSetup } from "./player.ts"
import { checkApart } from "./playing-parts.ts"
import { makeSight, type Sight } from "./privileged.ts"
import type { StageProgress } from "./progress.ts"
import { ReturnScale } from "./return-scale.ts"
import { chosenRates, resolveLearningRates, type SettledTrainOptions } from "./settle-rates.ts"
import { mostCheckpoints } from "./whole-run.ts"

/** Arguments of `train`. An agent may play the tasks of the environment or of `tasks`. */
export interface TrainSetup<Task = unknown> extends TrainArguments<Task>, AgentSetup<Task> {}

/** Arguments of a training run whose agent has been opened. */
export interface PlayedSetup<Task = unknown> extends TrainArguments<Task> {
  /** Environment. May be left out if `agentLoop` and `tasks` are given. */
  readonly environment?: Environment<Task> | undefined
}

interface TrainArguments<Task> extends TrainOptions {
  /** Model that is trained. */
  readonly policy: Trainable
  /** Tokenizer of the model. */
  readonly tokenizer: ChatCodec
  /** Frozen model whose log-probabilities the loss or the estimator needs, with the vocabulary of the policy. */
  readonly teacher?: Teacher | undefined
  /** Agent loop that plays the episodes instead of the built-in loop. */
  readonly agentLoop?: AgentLoop<Task> | undefined
  /** Source of tasks. Default: the order of the environment. */
  readonly tasks?: TaskSource<Task> | undefined
  /** Rollout hooks. The type of tasks is inferred from the environment or `tasks`. */
  readonly hooks?: RolloutHooks<NoInfer<Task>> | undefined
  /** Run that stores metrics and checkpoints. Without a run nothing is written. */
  readonly run?: Run | undefined
  /** Observers (callbacks) of the run. */
  readonly observers?: readonly RunObserver[] | undefined
  /** Signal that aborts the training. */
  readonly signal?: AbortSignal | undefined
  /** Whether SIGINT, SIGTERM and SIGHUP save the run before they end the process. Default true. */
  readonly handleSignals?: boolean | undefined
  /** Called frequently with the progress of the work. */
  readonly onProgress?: ((progress: StageProgress) => void) | undefined
  /** Called with warnings. Default: a warning of Node.js. */
  readonly onWarning?: ((message: string) => void) | undefined
}

/** Training after all checks, before any change. */
export interface Training<Task = unknown>
  extends Learning,
    Omit<PlayedSetup<Task>, keyof TrainOptions | keyof Learning> {
  readonly onWarning: (message: string) => void
  readonly parts: Parts
  /** Additional text of a privileged teacher for each group; undefined without one. */
  readonly sight: Sight<Task> | undefined
  /** Content of the checkpoints; undefined for an engine that cannot be saved. */
  readonly saved: Saved | undefined
}

/** Part of a training run that does not depend on the type of tasks. */
export interface Learning
  extends Credited,
    Pick<PlayedSetup, "policy" | "tokenizer" | "teacher" | "signal" | "onProgress"> {
  readonly options: SettledTrainOptions
  /** Critic, where the estimator needs values. Present after the start of the run. */
  readonly critic?: Critic | undefined
  /** Units of the critic's predictions. */
  readonly scale?: ReturnScale | undefined
}

/**
 * Checks the arguments of a training run before anything is changed.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid option or an engine that does not support it, `BAD_TOKENIZER` for a tokenizer that does not
 * fit the policy.
 */
export async function prepare<Task>(all: PlayedSetup<Task>): Promise<Training<Task>> {
  checkArguments("train", all)
  const {
    policy,
    tokenizer,
    teacher,
    environment,
    agentLoop,
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
  const options = resolveLearningRates(resolved, policy, run?.learningRates)
  checkObservers(observers)
  checkPlayers({ environment, agentLoop, hooks: given, tasks })
  const turns = makeTurns(options.rolloutHooks)
  const hooks = joinHooks<Task>(turns, given)
  const { rollout, seed, groups } = options
  const curriculum = openCurriculum(makeCurriculum(options.curriculum), { environment, rollout, seed, groups })
  const steered = steer(curriculum, { hooks, tasks })
  if (turns || curriculum) checkPlayers({ environment, agentLoop, ...steered })
  if (!environment && options.evaluation.every > 0)
    throw bad("An evaluation needs an environment with held-out tasks: give environment, or set evaluation.every to 0.")
  checkTogether(options)
  const limits = {
    maxCompletionTokens: rollout.maxCompletionTokens,
    maxPositions: longestSequence(policy),
    agentLoop,
  }
  checkLengths(limits, "rollout.maxCompletionTokens")
  const credited = makeCredited(options)
  const { estimator, loss, kl, needs } = credited
  checkGroups(estimator, options, onWarning)
  checkModels(policy, credited)
  checkSnapshots(options, policy.snapshots !== undefined)
  const sight = options.privileged && makeSight(options.privileged, { environment, rollout })
  checkTeacher(teacher, tokenizer, needs, estimator.needs?.includes("teacher") ? estimator.name : loss.name)
  if (options.expertData) provided("expertData", agentLoop ? undefined : environment, "expert")
  if (run && !policy.store) throw bad("This engine does not support checkpoints: train without a run.")

  if (run && run.iteration > options.iterations)
    throw bad(
      `iterations is ${options.iterations}, but ${run.iteration} iterations of the run are completed: set iterations to at least ${run.iteration}.`,
    )

  await checkPlan(policy, planOf(policy, options, credited, run !== undefined))
  const scale = needs.has("value") ? new ReturnScale() : undefined
  const memory = agentLoop ? undefined : environment?.memory
  const others = { "critic-units": scale, hooks: given, turns, tasks, curriculum: curriculum?.part, memory }
  const parts = partsOf(credited, others)
  remember(parts) // throws for states that cannot be saved
  if (options.maxStaleness > 0) {
    const { estimator, loss } = resolved
    checkApart({ estimator: ownOf(estimator), loss: ownOf(loss) }, parts)
  }
  // A run without a checkpoint restarts from the given policy, so the weights of the policy are checked, too.
  const reference = needsReference(needs) || run?.checkpoint === undefined
  const frozen = run && (await frozenOf(policy, needs.has("teacher") ? teacher : undefined, reference, signal))
  const critic = needs.has("value") ? async () => storeOf(await policy.critic!()) : undefined
  const taskFiles = run && (await digestTasks(environment?.taskFiles))
  const kept = { environment: environment?.name, taskFiles, files: tokenizer.files ?? [], parts, frozen }
  const saved = policy.store && { store: policy.store, critic, ...kept }
  const callOptions = { call: "train", section: "training", fields: trainFields, resolved } as const
  const settled = chosenRates(resolved, options, needs.has("value"))
  const promptDate = await runDate(tokenizer, run)
  if (saved) await run?.check({ ...saved, settled, promptDate, callOptions, room: mostCheckpoints(options) })
  return { ...setup, ...steered, options, estimator, loss, kl, needs, scale, sight, parts, saved }
}

/** Object of the program, where options give one under `use`. */
function ownOf<Own>(options: object & { readonly use?: Own }): Own | undefined {
  return options.use
}

/** Parts of a training run that may have a state, by role. Those that are undefined have no role. */
function partsOf({ estimator, loss, kl: { controller } }: Credited, others: Parts): Parts {
  const klWeight = controller && { name: "adaptive-kl", state: controller.state, restore: controller.restore }
  const given = Object.entries<Part | undefined>({ klWeight, ...others }).filter(([, part]) => part !== undefined)
  return { estimator, loss, ...Object.fromEntries(given) }
}

/** Digests of the weights that a run depends on and that its checkpoints do not contain. */
async function frozenOf(
  policy: Trainable,
  teacher: Teacher | undefined,
  reference: boolean,
  signal: AbortSignal | undefined,
): Promise<FrozenWeights | undefined> {
  const own = await policy.frozenWeights?.({ reference, signal })
  const taught = await teacher?.frozenWeights?.({ reference: true, signal })
  return taught?.reference === undefined ? own : { ...own, teacher: taught.reference }
}

function storeOf({ store }: Critic): ModelStore {
  if (store) return store
  throw bad("This engine does not support checkpoints of the critic: train without a run.")
}

/** Returns the root of all random numbers of one iteration. */
export function iterationRandom(
  { options }: { readonly options: { readonly seed: number } },
  iteration: number,
): Random {
  return new Random(options.seed).derive("iteration", iteration)
}

function bad(message: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", message)
}
