import type { Course, CourseSegment } from "../data/course.ts"
import type { Critic, Trainable } from "../engine/engine.ts"
import type { Sequence } from "../engine/sequence.ts"
import { group, integer, number, oneOf } from "../options/field.ts"
import type { ResolvedOf } from "../options/table.ts"
import { predictValues } from "../training/critic.ts"
import { learningRateField, rateRules, resolveLearningRate } from "../training/learning-rate.ts"
import { optimizerFields } from "../training/optimizer.ts"
import { miniBatches } from "../training/rows.ts"
import { adamwAt } from "../training/schedule.ts"
import { GigpoError } from "../util/errors.ts"
import type { Random } from "../util/random.ts"

// Implicit Q-learning (IQL, arXiv 2110.06169) over steps, offline: weights of recorded completions in supervised fine-tuning, as in STEP-HRL
// (arXiv 2604.05808). A value V of each state, before the first token of its completion, is fitted by expectile regression:
//
//     L_V = E[ |τ - 1(u < 0)| u² ],   u = Q(s, a) - V(s)
//     weight = min(exp((Q(s, a) - V(s)) / β), most)
//
// L_Q = (r + γ V(s') - Q(s, a))² is minimal if Q is the mean of r + γ V(s'). Implementation choice: one sample replaces the mean, so that no
// second network is fitted, as in HIQL (arXiv 2307.11949). This is exact for a deterministic environment.

export const implicitQFields = {
  expectile: number(0.7, "Expectile τ. Above 0.5, the value of a state is closer to that of its better completions.", {
    above: 0,
    below: 1,
  }),
  target: oneOf(
    "one-step",
    ["one-step", "return"],
    "Target Q of a completion: its reward plus the discounted value of the next state before the epoch (one-step), or the discounted return.",
  ),
  gamma: number(0.95, "Discount factor γ per step.", { min: 0, max: 1 }),
  temperature: number(1, "Temperature β in units of reward. Lower values give better completions more weight.", {
    above: 0,
  }),
  maxWeight: number(20, "Maximum weight.", { above: 0 }),
  epochs: integer(20, "Number of epochs in the training of the values.", { min: 1 }),
  stepsPerUpdate: integer(64, "Steps per update (optimizer step) of the values.", { min: 1 }),
  optimizer: group(
    {
      ...optimizerFields,
      learningRate: learningRateField(rateRules.critic),
      warmup: number(3, "Learning-rate warm-up in epochs (fractions allowed), over which the rate rises from 0.", {
        min: 0,
      }),
    },
    "Optimizer of the values (AdamW).",
  ),
}

export type ResolvedImplicitQ = ResolvedOf<typeof implicitQFields>

/**
 * Returns Q of each completion: the discounted rewards until the next completion of the conversation, plus the discounted value of its
 * state. Without values, the discounted sum of all following rewards.
 *
 * @param courses - courses of the completions. Those of one conversation are in order of time.
 * @param values - values V of their states, [completions].
 */
export function completionWorth(courses: readonly Course[], gamma: number, values?: ArrayLike<number>): Float64Array {
  const worth = new Float64Array(courses.length)
  for (let i = courses.length - 1; i >= 0; i--) {
    const { rewards, at } = courses[i]!
    const next = courses[i + 1]?.rewards === rewards ? courses[i + 1]!.at : rewards.length
    let sum = next === rewards.length ? 0 : values === undefined ? worth[i + 1]! : values[i + 1]!
    for (let step = next - 1; step >= at; step--) sum = rewards[step]! + gamma * sum
    worth[i] = sum
  }
  return worth
}

/**
 * Returns the target R of a squared error ½ (v - R)² that has the gradient of the expectile loss. The gradient of the former is v - R. That of
 * |τ - 1(u < 0)| u² with u = Q - v is -2 |τ - 1(u < 0)| u. Hence R = v + 2 |τ - 1(u < 0)| u.
 */
export function expectileTarget(worth: number, value: number, expectile: number): number {
  const missed = worth - value
  return value + 2 * Math.abs(expectile - (missed < 0 ? 1 : 0)) * missed
}

/** Returns the weight of a completion, min(exp((Q - V) / β), most). */
export function implicitQWeight(
  worth: number,
  value: number,
  { temperature, maxWeight }: Pick<ResolvedImplicitQ, "temperature" | "maxWeight">,
): number {
  return Math.min(Math.exp((worth - value) / temperature), maxWeight)
}

/**
 * Multiplies the token weights of sequences by the weights of implicit Q-learning. Trains the critic of the policy first, on the values
 * before the first token of each completion.
 *
 * @throws GigpoError `BAD_DATA` for completions without recorded rewards, `BAD_ARGUMENT` for an engine without a critic, `NON_FINITE` where
 * the critic diverges.
 */
export async function weighByImplicitQ(
  { policy, signal }: { readonly policy: Trainable; readonly signal?: AbortSignal | undefined },
  rows: readonly Sequence[],
  options: ResolvedImplicitQ,
  random: Random,
): Promise<Sequence[]> {
  const courses = rows.flatMap(({ segments }) => segments.map((segment) => courseOf(segment)))
  const critic = await criticOf(policy)
  const states = rows.map((row) => ({ ...row, segments: row.segments.map(({ start }) => ({ start, length: 1 })) }))
  const valuesOf = async () => await predictValues(critic, states, signal)
  const worthBy = (values: Float32Array) =>
    completionWorth(courses, options.gamma, options.target === "return" ? undefined : values)
  const optimizer = resolveLearningRate(options.optimizer, rateRules.critic, policy)
  const items = numbered(states)
  const parts = Math.min(Math.ceil(courses.length / options.stepsPerUpdate), items.length)
  for (let epoch = 0; epoch < options.epochs; epoch++) {
    const worth = worthBy(await valuesOf())
    const drawn = miniBatches([items], { parts }, random.derive(epoch))
    for (const [index, batch] of drawn.entries()) {
      await learn(critic, batch, worth, options.expectile, signal)
      const place = { index: epoch * parts + index, total: options.epochs * parts, perIteration: parts }
      const { skipped } = await critic.optimizerStep(adamwAt(optimizer, place))
      if (skipped)
        throw new GigpoError(
          "NON_FINITE",
          "The gradients of the values are not finite: lower implicitQ.optimizer.learningRate.",
        )
    }
  }
  const values = await valuesOf()
  const worth = worthBy(values)
  let completion = 0
  return rows.map((row) => ({
    ...row,
    segments: row.segments.map((segment) => {
      const weight = implicitQWeight(worth[completion]!, values[completion++]!, options)
      const { length, weights } = segment
      return { ...segment, weights: Float32Array.from({ length }, (_, t) => weight * (weights?.[t] ?? 1)) }
    }),
  }))
}

interface Item extends Sequence {
  /** Index of the first completion of the sequence among all completions. */
  readonly first: number
}

function numbered(states: readonly Sequence[]): Item[] {
  let first = 0
  return states.map((row) => {
    first += row.segments.length
    return { ...row, first: first - row.segments.length }
  })
}

/** Adds the gradient of the expectile loss over a batch. */
async function learn(
  critic: Critic,
  batch: readonly Item[],
  worth: Float64Array,
  expectile: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  const now = await predictValues(critic, batch, signal)
  let state = 0
  const rows = batch.map(({ tokens, attachments, segments, first }) => ({
    ...{ tokens, ...(attachments && { attachments }) },
    segments: segments.map((segment, at) => {
      const value = now[state++]! // each state has one token
      const returns = Float32Array.of(expectileTarget(worth[first + at]!, value, expectile))
      return { ...segment, values: Float32Array.of(value), returns }
    }),
  }))
  await critic.forwardBackward(rows, { kind: "clipped-value", clip: Number.POSITIVE_INFINITY }, { signal })
}

async function criticOf(policy: Trainable): Promise<Critic> {
  if (policy.critic) return await policy.critic()
  throw new GigpoError(
    "BAD_ARGUMENT",
    "implicitQ needs a critic, which this engine does not support: leave implicitQ out.",
  )
}

function courseOf({ course }: CourseSegment): Course {
  if (course) return course
  throw new GigpoError(
    "BAD_DATA",
    "implicitQ needs the rewards of completions: use recorded episodes, or a data source whose spans have a course.",
  )
}
