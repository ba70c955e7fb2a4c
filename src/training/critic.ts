import { spreadOf } from "../credit/diagnostics.ts"
import type { Critic, LossReport, StepReport } from "../engine/engine.ts"
import type { Sequence } from "../engine/rows.ts"
import { group, integer, limit, scheduled } from "../options/field.ts"
import { scheduleValue, type TrainingProgress } from "../options/schedule.ts"
import type { Resolved } from "../options/table.ts"
import type { Random } from "../util/random.ts"
import { nonFinite } from "./guards/step.ts"
import { learningRateField, rateRules } from "./learning-rate.ts"
import { meanAs } from "./mean.ts"
import { optimizerFields, type SettledOptimizerOptions } from "./optimizer.ts"
import type { ReturnScale } from "./return-scale.ts"
import { batches, gather } from "./rows.ts"
import { adamwAt } from "./schedule.ts"
import type { SequenceTable } from "./sequence-table.ts"

// PPO's critic beside the policy: it predicts returns, and learns from the same batches.

export const criticFields = {
  clip: scheduled(
    limit(
      0.5,
      "Predictions are held within this distance of those before the update (PPO), in running standard " +
        "deviations of the returns. Infinity turns it off.",
      { above: 0 },
    ),
  ),
  batchSteps: integer(256, "Steps of episodes of one step of its optimizer.", { min: 1 }),
  epochs: integer(1, "Passes over an iteration's steps.", { min: 1 }),
  warmupIterations: integer(0, "Iterations at the beginning in which the critic learns and the policy does not.", {
    min: 0,
  }),
  optimizer: group(
    { ...optimizerFields, learningRate: learningRateField(rateRules.critic) },
    "How the critic's AdamW takes its steps.",
  ),
}

export type ResolvedCriticOptions = Resolved<typeof criticFields>
/** With a learning rate. */
export type SettledCriticOptions = ResolvedCriticOptions & { readonly optimizer: SettledOptimizerOptions }

/** What the critic's steps of an iteration reported. */
export interface CriticTotals {
  readonly losses: LossReport[]
  readonly steps: StepReport[]
}

/**
 * Its value estimates in its own units, [sampled tokens of all rows].
 *
 * @throws GigpoError `NON_FINITE` where its weights have diverged.
 */
export async function predictValues(
  critic: Critic,
  rows: readonly Sequence[],
  signal?: AbortSignal,
): Promise<Float32Array> {
  const values = await critic.predict(rows, { signal })
  if (values.every(Number.isFinite)) return values
  throw nonFinite("The critic's values are not finite: its weights have diverged. Lower critic.optimizer.learningRate.")
}

/**
 * The critic's passes over an iteration's rows, towards the returns in them. Its batches are of rows from all tasks: the steps of one
 * task have much the same returns, and a critic that meets them task by task learns the task at hand over and over, and to tell no
 * states apart. Rows of one prompt stay together, since the engine computes it once. `stop` throws where the update is to be dropped,
 * and gives the signal that says so later.
 */
export async function updateCritic(
  critic: Critic,
  rows: readonly Sequence[],
  { clip, batchSteps, epochs, optimizer }: SettledCriticOptions,
  moment: TrainingProgress,
  random: Random,
  stop: () => AbortSignal | undefined,
): Promise<CriticTotals> {
  const totals: CriticTotals = { losses: [], steps: [] }
  const loss = { kind: "clipped-value", clip: scheduleValue(clip, moment) } as const
  const adamw = adamwAt(optimizer, { index: moment.iteration, total: moment.iterations, perIteration: 1 })
  // Those of other iterations were foretold by another critic.
  const prompts = byPrompt(rows.filter(({ spans }) => spans.every((span) => span.returns && span.values)))
  for (let epoch = 0; epoch < epochs; epoch++) {
    for (const batch of batches(prompts, batchSteps, random.fork(epoch))) {
      totals.losses.push(await critic.forwardBackward(batch, loss, { signal: stop() }))
      totals.steps.push(await critic.optimizerStep(adamw))
    }
  }
  return totals
}

function byPrompt(rows: readonly Sequence[]): Sequence[][] {
  return gather(rows, ({ tokens, spans }) => {
    const prompt = tokens.subarray(0, spans[0]!.start)
    return Buffer.from(prompt.buffer, prompt.byteOffset, prompt.byteLength).toString("latin1")
  })
}

export function criticMetrics({ losses, steps }: CriticTotals): Record<string, number> {
  const taken = steps.filter((step) => !step.skipped)
  return {
    ...meanAs("critic/loss", losses.map(({ loss }) => loss).filter(Number.isFinite)),
    ...meanAs(
      "critic/clip-fraction",
      losses.flatMap(({ metrics }) => metrics["critic/clip-fraction"] ?? []),
    ),
    ...meanAs(
      "critic/gradient-norm",
      taken.map((step) => step.gradientNorm),
    ),
    "critic/skipped": steps.length - taken.length,
  }
}

/**
 * Refuses to go on where a critic's last steps all had to be skipped, as `guards.nonFinite` has it for the policy's.
 *
 * @param most in a row, or as many as there were
 * @throws GigpoError `NON_FINITE`
 */
export function checkCriticSteps(
  { steps }: CriticTotals,
  most: number,
  iteration: number,
  onWarning: (message: string) => void,
): void {
  const skipped = steps.filter((step) => step.skipped).length
  if (skipped === 0) return
  const inRow = steps.length - 1 - steps.findLastIndex((step) => !step.skipped)
  const what = `${skipped} of ${steps.length} optimizer steps of the critic in iteration ${iteration} were skipped, their gradients not being finite.`
  if (inRow >= Math.min(most, steps.length))
    throw nonFinite(
      `${what} ${inRow} were in a row (guards.nonFinite). Lower critic.optimizer.learningRate, or look at the rewards.`,
    )
  onWarning(what)
}

/**
 * How well the values foretold the returns before anything was learned from them: explained variance is
 * 1 - Var(return - value) / Var(return) over tokens, absent where the returns are all equal.
 *
 * @param wantedReturns returns in the critic's units, [steps][tokens]
 */
export function valueMetrics(
  table: SequenceTable,
  wantedReturns: readonly Float32Array[],
  scale: ReturnScale,
): Record<string, number> {
  const inRewards = (column: Float32Array) => Float64Array.from(scale.toRewards(column))
  const returns = inRewards(table.join((_, step) => wantedReturns[step]!))
  const values = inRewards(table.columns.values!)
  const [wanted, missed] = [spreadOf(returns), spreadOf(returns.map((value, token) => value - values[token]!))]
  return {
    ...(wanted.std > 0 && { "critic/explained-variance": 1 - (missed.std / wanted.std) ** 2 }),
    "critic/return": wanted.mean,
    "critic/value": wanted.mean - missed.mean,
  }
}
