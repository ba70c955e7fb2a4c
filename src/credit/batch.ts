import type { TokenColumn } from "../engine/sequence.ts"
import { groupAnchorsInPieces } from "../kernels/group-anchors.ts"
import { checkList } from "../options/arguments.ts"
import { DenseIds, PairIds } from "../util/dense-ids.ts"
import { GigpoError } from "../util/errors.ts"
import { largestReward } from "../util/largest-reward.ts"
import { atOnce, itemsOfPiece, mapInPieces, type Pieces } from "../util/pace.ts"
import type { Batch, EstimatorStep } from "./estimator.ts"
import type { GrpoStep } from "./types.ts"

/** Step as input of `toBatch`. Absent optional data is needed only by the estimators that read the corresponding column. */
export interface BatchStep extends GrpoStep {
  /** Anchor state before the action. */
  readonly anchor?: string | undefined
  /** Anchor state after the action. */
  readonly nextAnchor?: string | undefined
  /** Whether the episode terminated with this step. Default false. */
  readonly terminated?: boolean | undefined
  /** Whether the episode was truncated after this step. Default false. */
  readonly truncated?: boolean | undefined
  /** Return of the greedy episode of the task; NaN if that episode failed. */
  readonly baseline?: number | undefined
  /** Reward of each token, [tokens]. The sum is the reward of the step. Default: the whole reward at the last token. */
  readonly tokenRewards?: TokenColumn | undefined
  /** Text of each token of the completion, [tokens]; see `Batch.tokenTexts`. */
  readonly tokenTexts?: readonly string[] | undefined
  /** Number of sampled tokens, at least 1. Default 1. */
  readonly length?: number | undefined
  /** Recorded data of the step. */
  readonly record?: EstimatorStep | undefined
  /** Conversation of the episode that the step belongs to. Steps without a value share one conversation. */
  readonly conversation?: string | number | undefined
  /** Agent that took the step, with ids shared by all episodes. Steps without a value share one agent. */
  readonly agent?: string | number | undefined
}

/**
 * Returns a batch of columns, as estimators read them, from plain objects. Padding is left out.
 *
 * @param steps [steps], in time order within an episode; episodes may interleave
 * @param statistics statistics that `Estimator.needs` requests, [steps][tokens]
 * @throws NON_FINITE for a reward that is not finite, BAD_ARGUMENT for an invalid step. A missing anchor throws when the anchors are read.
 */
export function toBatch(steps: readonly BatchStep[], statistics?: Batch["statistics"]): Batch {
  return collect(steps, statistics).batch
}

/** `toBatch` for many steps, which pauses between steps. Anchors are grouped as well, so that no estimator does it at once. */
export function* batchInPieces(steps: readonly BatchStep[], statistics?: Batch["statistics"]): Pieces<Batch> {
  const { batch, anchors } = yield* collectInPieces(steps, statistics)
  yield* anchors.group()
  return batch
}

interface Collected {
  readonly batch: Batch
  /** Index in the input of each row of the batch, [steps]. */
  readonly index: Int32Array
  readonly anchors: Anchors
}

/** Returns a batch of plain steps, with the input index of each row. */
export function collect(input: readonly BatchStep[], statistics?: Batch["statistics"]): Collected {
  return atOnce(collectInPieces(input, statistics))
}

function* collectInPieces(input: readonly BatchStep[], statistics: Batch["statistics"]): Pieces<Collected> {
  checkList("The steps", input)
  let length = 0
  for (let at = 0; at < input.length; at++) {
    if (at % itemsOfPiece === 0) yield
    if (input[at]!.padding !== true) length++
  }
  const steps: BatchStep[] = []
  const index = new Int32Array(length)
  const columns = {
    task: new Int32Array(length),
    episode: new Int32Array(length),
    rewards: new Float64Array(length),
    valid: new Uint8Array(length),
    terminated: new Uint8Array(length),
    truncated: new Uint8Array(length),
    lengths: new Int32Array(length),
  }
  const nextAnchors: (string | undefined)[] = []
  const [tasks, episodes] = [new DenseIds(), new PairIds()]
  for (let at = 0; at < input.length; at++) {
    if (at % itemsOfPiece === 0) yield
    const step = input[at]!
    if (step.padding === true) continue
    checkStep(step, at)
    const row = steps.push(step) - 1
    index[row] = at
    const task = tasks.of(step.task)
    columns.task[row] = task
    columns.episode[row] = episodes.of(task, step.episode)
    columns.rewards[row] = step.reward
    columns.valid[row] = step.valid === false ? 0 : 1
    columns.terminated[row] = step.terminated === true ? 1 : 0
    columns.truncated[row] = step.truncated === true ? 1 : 0
    columns.lengths[row] = step.length ?? 1
    nextAnchors.push(step.nextAnchor)
  }
  const anchors = new Anchors(steps, columns.task, index)
  const batch: Batch = {
    length,
    ...columns,
    get anchors() {
      return anchors.all
    },
    get anchorGroups() {
      return anchors.groups
    },
    nextAnchors,
    ...(yield* optionalColumns(steps, columns.episode)),
    ...(statistics && { statistics }),
  }
  return { batch, index, anchors }
}

/** Anchor states of a batch and their groups, found when they are first needed: GRPO needs no anchors. */
class Anchors {
  readonly #steps: readonly BatchStep[]
  readonly #tasks: Int32Array
  readonly #index: Int32Array
  #all: readonly string[] | undefined
  #groups: Int32Array | undefined

  constructor(steps: readonly BatchStep[], tasks: Int32Array, index: Int32Array) {
    this.#steps = steps
    this.#tasks = tasks
    this.#index = index
  }

  get all(): readonly string[] {
    this.#all ??= atOnce(this.#find())
    return this.#all
  }

  get groups(): Int32Array {
    return this.#groups ?? atOnce(this.group())
  }

  /** Finds anchors and groups. */
  *group(): Pieces<Int32Array> {
    this.#all ??= yield* this.#find()
    this.#groups ??= (yield* groupAnchorsInPieces(this.#tasks, this.#all)).groups
    return this.#groups
  }

  #find(): Pieces<string[]> {
    return mapInPieces(this.#steps, (step, row) => checkedAnchor(step, this.#index[row]!))
  }
}

/** Columns that are present in some batches only. */
function* optionalColumns(steps: readonly BatchStep[], episode: Int32Array): Pieces<Partial<Batch>> {
  const counts = { record: 0, conversation: 0, baseline: 0, tokenRewards: 0, tokenTexts: 0, agent: 0 }
  const names = Object.keys(counts) as (keyof typeof counts)[]
  for (const [row, step] of steps.entries()) {
    if (row % itemsOfPiece === 0) yield
    for (const name of names) if (step[name] !== undefined) counts[name]++
  }
  const found: { -readonly [Name in keyof Batch]?: Batch[Name] } = {}
  if (steps.length > 0 && counts.record === steps.length)
    found.steps = yield* mapInPieces(steps, (step) => step.record!)
  if (counts.conversation > 0) {
    const ids = new PairIds()
    const conversations = yield* mapInPieces(steps, (step, row) => ids.of(episode[row]!, step.conversation ?? ""))
    found.conversation = Int32Array.from(conversations)
  }
  if (counts.baseline > 0)
    found.baselines = Float64Array.from(yield* mapInPieces(steps, ({ baseline = Number.NaN }) => baseline))
  if (counts.tokenRewards > 0) found.tokenRewards = yield* mapInPieces(steps, tokenRewardsOf)
  if (counts.tokenTexts === steps.length) found.tokenTexts = yield* mapInPieces(steps, (step) => step.tokenTexts!)
  if (counts.agent > 0) {
    const ids = new DenseIds()
    found.agent = Int32Array.from(yield* mapInPieces(steps, (step) => ids.of(step.agent ?? "")))
    found.agentNames = ids.keys
  }
  return found
}

/** Returns row values in the order of the input steps. */
export function scatter<Values extends Float64Array | Int32Array>(
  values: Values,
  index: Int32Array,
  into: Values,
): Values {
  for (let row = 0; row < index.length; row++) into[index[row]!] = values[row]!
  return into
}

function tokenRewardsOf({ reward, tokenRewards, length = 1 }: BatchStep): TokenColumn {
  if (tokenRewards) return tokenRewards
  const onLast = new Float64Array(length)
  onLast[length - 1] = reward
  return onLast
}

function checkStep(step: BatchStep, position: number): void {
  const { task, episode, conversation = 0, agent = 0, nextAnchor = "", length = 1, reward } = step
  if (!isKey(task)) throw badKey("task", task, position)
  if (!isKey(episode)) throw badKey("episode", episode, position)
  if (!isKey(conversation)) throw badKey("conversation", conversation, position)
  if (!isKey(agent)) throw badKey("agent", agent, position)
  if (typeof nextAnchor !== "string")
    throw bad(`Step ${position} has a nextAnchor of type ${typeof nextAnchor}; give a string, or leave it out.`)
  if (!(Number.isInteger(length) && length >= 1 && length < 2 ** 31))
    throw bad(`Step ${position} has the length ${String(length)}; give the number of its sampled tokens, at least 1.`)
  for (const name of ["tokenRewards", "tokenTexts"] as const)
    if (step[name] !== undefined && step[name].length !== length)
      throw bad(`Step ${position} has ${step[name].length} ${name} for ${length} tokens; give one per token.`)
  if (Math.abs(reward) <= largestReward && typeof reward === "number") return
  const where = `Step ${position} (task ${JSON.stringify(task)}, episode ${JSON.stringify(episode)})`
  throw new GigpoError(
    "NON_FINITE",
    `${where} has the reward ${String(reward)}; the environment must give finite numbers, at most ${largestReward} in size.`,
  )
}

function isKey(value: unknown): boolean {
  return typeof value === "string" || typeof value === "number"
}

function checkedAnchor(step: BatchStep, position: number): string {
  if (typeof step.anchor === "string") return step.anchor
  throw bad(
    `Step ${position} has an anchor of type ${typeof step.anchor}; give a string that identifies the state of the environment.`,
  )
}

function badKey(name: string, key: unknown, position: number): GigpoError {
  return bad(
    `Step ${position} has ${/^[ae]/.test(name) ? "an" : "a"} ${name} of type ${typeof key}; give a string or a number.`,
  )
}

function bad(message: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", message)
}
