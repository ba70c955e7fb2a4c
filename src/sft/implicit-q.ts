import type { Course, CourseSpan } from "../data/course.ts"
import type { Critic, Trainable } from "../engine/engine.ts"
import type { Sequence } from "../engine/rows.ts"
import { group, integer, number, oneOf } from "../options/field.ts"
import type { Resolved } from "../options/table.ts"
import { predictValues } from "../training/critic.ts"
import { learningRateField, rateRules, resolveLearningRate } from "../training/learning-rate.ts"
import { optimizerFields } from "../training/optimizer.ts"
import { batches } from "../training/rows.ts"
import { adamwAt } from "../training/schedule.ts"
import { GigpoError } from "../util/errors.ts"
import type { Random } from "../util/random.ts"

// Implicit Q-learning (IQL, arXiv 2110.06169) over steps, offline: what a recorded reply is worth in cloning, as STEP-HRL (arXiv
// 2604.05808) has it. A value V of every state, before the first token of its reply, is fitted to the better of what was seen to follow:
//
//     L_V = E[ |τ - 1(u < 0)| u² ],   u = Q(s, a) - V(s)
//     weight = min(exp((Q(s, a) - V(s)) / β), most)
//
// L_Q = (r + γ V(s') - Q(s, a))² is at its least where Q is the mean of r + γ V(s'). Our reading: that one sample stands for the mean, so
// that no second network is fitted, as HIQL (arXiv 2307.11949) has it; exact where the environment is deterministic.

export const implicitQFields = {
  expectile: number(
    0.7,
    "τ: above ½ the value of a state is that of the better of the replies that were given in it.",
    {
      above: 0,
      below: 1,
    },
  ),
  target: oneOf(
    "one-step",
    ["one-step", "return"],
    "What a reply is worth: its reward and the value of the next state, as it was before the pass; or all that followed, discounted.",
  ),
  gamma: number(0.95, "Discount of later steps.", { min: 0, max: 1 }),
  temperature: number(1, "β, in units of reward: the lower, the more the better replies outweigh the others.", {
    above: 0,
  }),
  most: number(20, "The largest weight.", { above: 0 }),
  epochs: integer(20, "Passes of the values over what is learned from.", { min: 1 }),
  batchSteps: integer(64, "Steps of one optimizer step of the values.", { min: 1 }),
  optimizer: group(
    { ...optimizerFields, learningRate: learningRateField(rateRules.critic) },
    "How the values' AdamW takes its steps.",
  ),
}

export type ResolvedImplicitQ = Resolved<typeof implicitQFields>

/**
 * Of each reply what it is worth, Q: the discounted rewards until the next reply of its conversation of which there is a value, and that
 * value; without values all its rewards.
 *
 * @param courses of replies, those of one conversation in the order of time
 * @param values V of the state of each, [replies]
 */
export function replyWorth(courses: readonly Course[], gamma: number, values?: ArrayLike<number>): Float64Array {
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
 * What a squared error is to be taken to, so that its gradient is the expectile loss's: of ½ (v - R)² it is v - R, of
 * |τ - 1(u < 0)| u² with u = Q - v it is -2 |τ - 1(u < 0)| u, and so R = v + 2 |τ - 1(u < 0)| u.
 */
export function expectileTarget(worth: number, value: number, expectile: number): number {
  const missed = worth - value
  return value + 2 * Math.abs(expectile - (missed < 0 ? 1 : 0)) * missed
}

/** min(exp((Q - V) / β), most) */
export function implicitQWeight(
  worth: number,
  value: number,
  { temperature, most }: Pick<ResolvedImplicitQ, "temperature" | "most">,
): number {
  return Math.min(Math.exp((worth - value) / temperature), most)
}

/**
 * The same rows, whose replies weigh by how much better they did than their state's value, times what they weighed. Fits the policy's
 * critic first; of each reply it learns the value before the first token.
 *
 * @throws GigpoError `BAD_DATA` for replies of which nobody tells what they earned, `BAD_ARGUMENT` where the engine trains no critic,
 * `NON_FINITE` where it diverged
 */
export async function weighByImplicitQ(
  { policy, signal }: { readonly policy: Trainable; readonly signal?: AbortSignal | undefined },
  rows: readonly Sequence[],
  options: ResolvedImplicitQ,
  random: Random,
): Promise<Sequence[]> {
  const courses = rows.flatMap(({ spans }) => spans.map((span) => courseOf(span)))
  const critic = await criticOf(policy)
  const states = rows.map((row) => ({ ...row, spans: row.spans.map(({ start }) => ({ start, length: 1 })) }))
  const valuesOf = async () => await predictValues(critic, states, signal)
  const worthBy = (values: Float32Array) =>
    replyWorth(courses, options.gamma, options.target === "return" ? undefined : values)
  const optimizer = resolveLearningRate(options.optimizer, rateRules.critic, policy)
  const items = numbered(states)
  const parts = Math.min(Math.ceil(courses.length / options.batchSteps), items.length)
  for (let epoch = 0; epoch < options.epochs; epoch++) {
    const worth = worthBy(await valuesOf())
    const drawn = batches([items], { parts }, random.fork(epoch))
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
  let reply = 0
  return rows.map((row) => ({
    ...row,
    spans: row.spans.map((span) => {
      const weight = implicitQWeight(worth[reply]!, values[reply++]!, options)
      const { length, weights } = span
      return { ...span, weights: Float32Array.from({ length }, (_, t) => weight * (weights?.[t] ?? 1)) }
    }),
  }))
}

interface Item extends Sequence {
  /** Which of all replies its first is. */
  readonly first: number
}

function numbered(states: readonly Sequence[]): Item[] {
  let first = 0
  return states.map((row) => {
    first += row.spans.length
    return { ...row, first: first - row.spans.length }
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
  const rows = batch.map(({ tokens, attachments, spans, first }) => ({
    ...{ tokens, ...(attachments && { attachments }) },
    spans: spans.map((span, at) => {
      const value = now[state++]! // each state has one token
      const returns = Float32Array.of(expectileTarget(worth[first + at]!, value, expectile))
      return { ...span, values: Float32Array.of(value), returns }
    }),
  }))
  await critic.forwardBackward(rows, { kind: "clipped-value", clip: Number.POSITIVE_INFINITY }, { signal })
}

async function criticOf(policy: Trainable): Promise<Critic> {
  if (policy.critic) return await policy.critic()
  throw new GigpoError("BAD_ARGUMENT", "implicitQ needs a critic, which this engine cannot train: leave it out.")
}

function courseOf({ course }: CourseSpan): Course {
  if (course) return course
  throw new GigpoError(
    "BAD_DATA",
    "implicitQ needs to know what replies earned: give recorded episodes, or a source whose spans have a course.",
  )
}
