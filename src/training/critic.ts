import { spreadOf } from "../credit/diagnostics.ts"
import type { Critic, LossReport, OptimizerStepStatistics } from "../engine/engine.ts"
import type { Sequence } from "../engine/sequence.ts"
import { group, integer, limit, scheduled } from "../options/field.ts"
import { scheduleValue, type TrainingProgress } from "../options/schedule.ts"
import type { ResolvedOf } from "../options/table.ts"
import type { Random } from "../util/random.ts"
import { nonFinite } from "./guards/step.ts"
import { learningRateField, rateRules } from "./learning-rate.ts"
import { meanAs } from "./mean.ts"
import { optimizerFields, type SettledOptimizerOptions } from "./optimizer.ts"
import type { ReturnScale } from "./return-scale.ts"
import { gather, miniBatches } from "./rows.ts"
import { adamwAt } from "./schedule.ts"
import type { SequenceTable } from "./sequence-table.ts"

// Critic of PPO: predicts returns and is trained on the same sequences as the policy.

export const criticFields = {
  clip: scheduled(
    limit(
      0.5,
      "Clip range of predictions around those before the update (PPO), in running standard deviations of the returns. Infinity turns " +
        "it off.",
      { above: 0 },
    ),
  ),
  stepsPerUpdate: integer(256, "Episode steps per update (optimizer step) of the critic.", { min: 1 }),
  epochs: integer(1, "Passes of the critic over the steps of an iteration.", { min: 1 }),
  warmupIterations: integer(0, "Iterations at the start in which only the critic is trained.", {
    min: 0,
  }),
  optimizer: group(
    { ...optimizerFields, learningRate: learningRateField(rateRules.critic) },
    "Optimizer of the critic (AdamW).",
  ),
}

export type ResolvedCriticOptions = ResolvedOf<typeof criticFields>
/** Options of the critic with a learning rate. */
export type SettledCriticOptions = ResolvedCriticOptions & { readonly optimizer: SettledOptimizerOptions }

/** Reports of the critic's updates in one iteration. */
export interface CriticTotals {
  readonly losses: LossReport[]
  readonly steps: OptimizerStepStatistics[]
}

/**
 * Returns the value estimates of a critic in the units of `ReturnScale`, [sampled tokens of all sequences].
 *
 * @throws GigpoError `NON_FINITE` for values that are not finite.
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
 * Trains the critic on the returns of an iteration. Batches mix the sequences of all tasks: the steps of a task have similar returns, and
 * training task by task would teach the critic the mean of each task instead of differences between states. Sequences with the same prompt
 * stay together, since the engine computes the prompt once. `stop` throws where the update is to be dropped, and returns the signal of a
 * later drop.
 */
export async function updateCritic(
  critic: Critic,
  rows: readonly Sequence[],
  { clip, stepsPerUpdate, epochs, optimizer }: SettledCriticOptions,
  progress: TrainingProgress,
  random: Random,
  stop: () => AbortSignal | undefined,
): Promise<CriticTotals> {
  const totals: CriticTotals = { losses: [], steps: [] }
  const loss = { kind: "clipped-value", clip: scheduleValue(clip, progress) } as const
  const adamw = adamwAt(optimizer, { index: progress.iteration, total: progress.iterations, perIteration: 1 })
  // Sequences of other iterations have no predictions of this critic.
  const prompts = byPrompt(
    rows.filter(({ segments }) => segments.every((segment) => segment.returns && segment.values)),
  )
  for (let epoch = 0; epoch < epochs; epoch++) {
    for (const batch of miniBatches(prompts, stepsPerUpdate, random.derive(epoch))) {
      totals.losses.push(await critic.forwardBackward(batch, loss, { signal: stop() }))
      totals.steps.push(await critic.optimizerStep(adamw))
    }
  }
  return totals
}

function byPrompt(rows: readonly Sequence[]): Sequence[][] {
  return gather(rows, ({ tokens, segments }) => {
    const prompt = tokens.subarray(0, segments[0]!.start)
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
 * Checks the skipped optimizer steps of the critic, as `guards.maxNonFinite` does for the policy. Warns if steps were skipped.
 *
 * @param most - maximum number of skipped steps in a row. The number of steps in the iteration is also a maximum.
 * @throws GigpoError `NON_FINITE` if the maximum is reached.
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
  const what = `${skipped} of ${steps.length} optimizer steps of the critic in iteration ${iteration} were skipped because their gradients were not finite.`
  if (inRow >= Math.min(most, steps.length))
    throw nonFinite(
      `${what} ${inRow} were in a row (guards.maxNonFinite). Lower critic.optimizer.learningRate, or check the rewards.`,
    )
  onWarning(what)
}

/**
 * Returns metrics of the critic's predictions before the update. The explained variance is 1 - Var(return - value) / Var(return) over
 * tokens, absent if the returns are all equal.
 *
 * @param wantedReturns - returns in the critic's units, [steps][tokens].
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
