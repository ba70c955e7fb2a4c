import type { Column } from "../engine/rows.ts"
import { groupAnchors } from "../kernels/group-anchors.ts"
import { checkList } from "../options/arguments.ts"
import { denseIds } from "../util/dense-ids.ts"
import { GigpoError } from "../util/errors.ts"
import { largestReward } from "../util/largest-reward.ts"
import { groupByAnchor } from "./anchors.ts"
import type { Batch, StepRecord } from "./estimator.ts"
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
  readonly tokenRewards?: Column | undefined
  /** Text of each token of the completion, [tokens]; see `Batch.tokenTexts`. */
  readonly tokenTexts?: readonly string[] | undefined
  /** Number of sampled tokens, at least 1. Default 1. */
  readonly length?: number | undefined
  /** Recorded data of the step. */
  readonly record?: StepRecord | undefined
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

interface Collected {
  readonly batch: Batch
  /** Index in the input of each row of the batch, [steps]. */
  readonly index: Int32Array
}

/** Returns a batch of plain steps, with the input index of each row. */
export function collect(input: readonly BatchStep[], statistics?: Batch["statistics"]): Collected {
  checkList("The steps", input)
  const steps = input.filter((step) => step.padding !== true)
  const index = new Int32Array(steps.length)
  for (let at = 0, row = 0; row < steps.length; at++) if (input[at] === steps[row]) index[row++] = at
  const columns = {
    rewards: new Float64Array(steps.length),
    valid: new Uint8Array(steps.length),
    terminated: new Uint8Array(steps.length),
    truncated: new Uint8Array(steps.length),
    lengths: new Int32Array(steps.length),
  }
  for (const [row, step] of steps.entries()) {
    checkStep(step, index[row]!)
    columns.rewards[row] = step.reward
    columns.valid[row] = step.valid === false ? 0 : 1
    columns.terminated[row] = step.terminated === true ? 1 : 0
    columns.truncated[row] = step.truncated === true ? 1 : 0
    columns.lengths[row] = step.length ?? 1
  }
  const task = denseIds(steps.map((step) => step.task))
  const episode = groupByAnchor(task, keysOf(steps, "episode"))

  // GRPO needs no anchors. Estimators that read them find them once.
  let anchors: string[] | undefined
  let anchorGroups: Int32Array | undefined
  const batch: Batch = {
    length: steps.length,
    task,
    episode,
    ...columns,
    get anchors() {
      anchors ??= steps.map((step, row) => checkedAnchor(step, index[row]!))
      return anchors
    },
    get anchorGroups() {
      anchorGroups ??= groupAnchors(task, this.anchors).groups
      return anchorGroups
    },
    nextAnchors: steps.map((step) => step.nextAnchor),
    ...optionalColumns(steps, episode),
    ...(statistics && { statistics }),
  }
  return { batch, index }
}

/** Columns that are present in some batches only. */
function optionalColumns(steps: readonly BatchStep[], episode: Int32Array): Partial<Batch> {
  const has = (name: keyof BatchStep) => steps.some((step) => step[name] !== undefined)
  const all = (name: keyof BatchStep) => steps.every((step) => step[name] !== undefined)
  const found: { -readonly [Name in keyof Batch]?: Batch[Name] } = {}
  if (has("record") && all("record")) found.steps = steps.map((step) => step.record!)
  if (has("conversation")) found.conversation = groupByAnchor(episode, keysOf(steps, "conversation"))
  if (has("baseline")) found.baselines = Float64Array.from(steps, ({ baseline = Number.NaN }) => baseline)
  if (has("tokenRewards")) found.tokenRewards = steps.map(tokenRewardsOf)
  if (all("tokenTexts")) found.tokenTexts = steps.map((step) => step.tokenTexts!)
  if (has("agent")) {
    const names = keysOf(steps, "agent")
    found.agent = denseIds(names)
    found.agentNames = [...new Set(names)] // in order of first occurrence, as the ids
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

function tokenRewardsOf({ reward, tokenRewards, length = 1 }: BatchStep): Column {
  if (tokenRewards) return tokenRewards
  const onLast = new Float64Array(length)
  onLast[length - 1] = reward
  return onLast
}

function keysOf(steps: readonly BatchStep[], name: "episode" | "conversation" | "agent"): (string | number)[] {
  return steps.map((step) => step[name] ?? "")
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
