import { groupStatistics } from "../credit/statistics.ts"
import type { Critic, LossReport, StepReport } from "../engine/engine.ts"
import type { Column, Row } from "../engine/rows.ts"
import { group, limit, number, scheduled, whole } from "../options/field.ts"
import { at, type Moment } from "../options/schedule.ts"
import type { Resolved } from "../options/table.ts"
import type { Random } from "../random.ts"
import { mean } from "./mean.ts"
import { optimizerFields } from "./optimizer.ts"
import { batches, gather } from "./rows.ts"
import { adamwAt } from "./schedule.ts"

// PPO's critic beside the policy: it foretells returns, and learns from the same batches.

export const criticFields = {
  clip: scheduled(
    limit(
      0.5,
      "Predictions are held within this distance of those before the update (PPO), in running standard " +
        "deviations of the returns. Infinity turns it off.",
      { above: 0 },
    ),
  ),
  batchRows: whole(256, "Steps of episodes of one step of its optimizer.", { least: 1 }),
  epochs: whole(1, "Passes over an iteration's steps.", { least: 1 }),
  headStart: whole(0, "Iterations at the beginning in which the critic learns and the policy does not.", { least: 0 }),
  optimizer: group(
    {
      ...optimizerFields,
      learningRate: scheduled(
        number(1e-5, "The default suits a pretrained model; a small one from scratch wants about 3e-4.", { least: 0 }),
      ),
    },
    "How the critic's AdamW takes its steps.",
  ),
}

export type ResolvedCriticOptions = Resolved<typeof criticFields>

/** What the critic's steps of an iteration reported. */
export interface CriticTotals {
  readonly losses: LossReport[]
  readonly steps: StepReport[]
}

/**
 * The critic's passes over an iteration's rows, towards the returns in them. Its batches are of rows from all tasks: the steps of one
 * task have much the same returns, and a critic that meets them task by task learns the task at hand over and over, and to tell no
 * states apart. Rows of one prompt stay together, since the engine computes it once.
 */
export async function updateCritic(
  critic: Critic,
  rows: readonly Row[],
  { clip, batchRows, epochs, optimizer }: ResolvedCriticOptions,
  moment: Moment,
  random: Random,
): Promise<CriticTotals> {
  const totals: CriticTotals = { losses: [], steps: [] }
  const loss = { kind: "clipped-value", clip: at(clip, moment) } as const
  const adamw = adamwAt(optimizer, { index: moment.iteration, total: moment.iterations, perIteration: 1 })
  const prompts = byPrompt(rows)
  for (let epoch = 0; epoch < epochs; epoch++) {
    for (const batch of batches(prompts, batchRows, random.fork(epoch))) {
      totals.losses.push(await critic.forwardBackward(batch, loss))
      totals.steps.push(await critic.optimizerStep(adamw))
    }
  }
  return totals
}

function byPrompt(rows: readonly Row[]): Row[][] {
  return gather(rows, ({ tokens, spans }) => {
    const prompt = tokens.subarray(0, spans[0]!.start)
    return Buffer.from(prompt.buffer, prompt.byteOffset, prompt.byteLength).toString("latin1")
  })
}

export function criticMetrics({ losses, steps }: CriticTotals): Record<string, number> {
  const taken = steps.filter((step) => !step.skipped)
  return {
    "critic/loss": mean(losses.map(({ loss }) => loss).filter(Number.isFinite)),
    "critic/clip-fraction": mean(losses.map(({ metrics }) => metrics["critic/clip-fraction"] ?? 0)),
    "critic/gradient-norm": mean(taken.map((step) => step.gradientNorm)),
    "critic/skipped": steps.length - taken.length,
  }
}

/**
 * How well the values foretold the returns before anything was learned from them: explained variance is
 * 1 - Var(return - value) / Var(return) over tokens, 0 where the returns are all equal.
 *
 * @param returns in units of reward, [steps][tokens], as are the values
 */
export function valueMetrics(returns: readonly Float32Array[], values: readonly Column[]): Record<string, number> {
  const [all, misses]: [number[], number[]] = [[], []]
  for (const [step, tokens] of returns.entries()) {
    for (const [token, value] of tokens.entries()) {
      all.push(value)
      misses.push(value - values[step]![token]!)
    }
  }
  const spread = (numbers: readonly number[]) => {
    const { mean, std } = groupStatistics(Float64Array.from(numbers), new Int32Array(numbers.length))
    return { mean: mean[0] ?? 0, std: std[0] ?? 0 }
  }
  const [wanted, missed] = [spread(all), spread(misses)]
  return {
    "critic/explained-variance": wanted.std === 0 ? 0 : 1 - (missed.std / wanted.std) ** 2,
    "critic/return": wanted.mean,
    "critic/value": wanted.mean - missed.mean,
  }
}
