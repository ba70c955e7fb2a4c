import { type Sequence, stepSequence } from "../engine/rows.ts"
import { integer, number, scheduled } from "../options/field.ts"
import type { OptionsOf } from "../options/table.ts"
import type { Random } from "../util/random.ts"
import { wrapEstimator } from "./as-estimator.ts"
import { defineEstimator } from "./define-estimator.ts"
import type { Batch, Credit, Estimator } from "./estimator.ts"
import { jointState } from "./joint-state.ts"
import { innerEstimator, ofFields } from "./of-estimator.ts"
import { outsideRuns, settle } from "./options.ts"
import { firstSteps } from "./outcomes.ts"
import { remember } from "./remember.ts"
import { ReplayMemory } from "./replay-memory.ts"
import { episodeReturns } from "./returns.ts"
import { groupStatistics } from "./statistics.ts"

/** Options of `spear`. */
export const spearFields = {
  ...ofFields,
  minAdvantage: number(1, "Minimum advantage of steps in the replay buffer."),
  capacity: integer(2048, "Size of the replay buffer in steps, at least 1; the oldest steps are removed first.", {
    min: 1,
  }),
  maxAge: integer(10, "Maximum age of a step in the replay buffer in iterations, at least 1.", { min: 1 }),
  history: integer(10_240, "Number of past tasks whose median mean return is the baseline, at least 1.", { min: 1 }),
  rows: integer(256, "Maximum number of replayed steps per iteration, drawn at random.", { min: 0 }),
  coefficient: scheduled(
    number(1, "Weight of replayed steps relative to those of the iteration, at least 0.", { min: 0 }),
  ),
  warmup: integer(
    200,
    "Iterations over which the weight of replayed steps grows from 0, by half a cosine. 0 turns the warm-up off.",
    {
      min: 0,
    },
  ),
  keepGroups: number(0.75, "Share of tasks that are learned from, those whose returns differ most, in (0, 1].", {
    above: 0,
    max: 1,
  }),
}

/** Options of `spear`. */
export type SpearOptions = OptionsOf<typeof spearFields>

/**
 * Self-imitation (SPEAR, TencentYoutuResearch/SPEAR) around another estimator. Steps with an advantage of at least 1 enter a replay
 * buffer. They are learned from again in later iterations with A = c (R(τ) - median of the mean returns of past tasks), if that is
 * above 0. Other parts of SPEAR are separate: clip-cov is the loss `clip-cov`, the reward of tool calls is a reward. Two points are our
 * interpretation: single steps are stored and drawn instead of whole episodes, and a step is not replayed in its own iteration. Steps with
 * images or constraints are not stored.
 *
 * @throws BAD_ARGUMENT for an invalid option, or steps without tokens
 */
export const spear = defineEstimator({
  name: "spear",
  fields: spearFields,
  about: {
    system: "SPEAR",
    origin: "relative",
    changes: ["credit", "data"],
    equation: "steps with A ≥ 1 are replayed with R - median of the mean returns of past tasks, if positive",
    source: "TencentYoutuResearch/SPEAR",
    status: "partial",
    note: "Steps are replayed in every iteration; the authors replay once the buffer exceeds 1.5 times its size, and empty it. SPEAR's clip-cov is a separate loss, its tool reward a reward.",
  },
  make(options: SpearOptions = {}): Estimator {
    const inner = innerEstimator("spear", settle("spear", options, spearFields, outsideRuns).of)
    const memory = new ReplayMemory()
    const amended = wrapEstimator(inner, {
      name: "spear",
      change(credit, batch, { moment, random }) {
        const settings = settle("spear", options, spearFields, moment)
        const { minAdvantage, maxAge, rows, keepGroups } = settings
        const returns = episodeReturns(batch.rewards, batch.episode)
        const tasks = groupStatistics(returns, batch.task, firstSteps(batch.episode))
        const limits = { ...settings, since: moment.iteration - maxAge }
        memory.keep([], Array.from(tasks.mean), limits)
        const extraRows = replay(memory, rows, imitationWeight(moment.iteration, settings), random)
        const skip = narrow(credit, batch, tasks.std, keepGroups)
        const isGood = (row: number) => skip?.[row] !== 1 && meanOf(credit.advantages[row]!) >= minAdvantage
        memory.keep(remember(batch, returns, moment.iteration, isGood), [], limits)
        return {
          ...credit,
          ...(skip && { skip }),
          extraRows: [...(credit.extraRows ?? []), ...extraRows],
          metrics: { ...credit.metrics, "replay/remembered": memory.steps.length, "replay/rows": extraRows.length },
        }
      },
    })
    return { ...amended, ...jointState(memory, inner) }
  },
})

/** Weight c ½ (1 - cos(π · iteration / warmup)) during warm-up, then c. */
export function imitationWeight(
  iteration: number,
  { coefficient, warmup }: { readonly coefficient: number; readonly warmup: number },
): number {
  return iteration >= warmup ? coefficient : (coefficient * (1 - Math.cos((Math.PI * iteration) / warmup))) / 2
}

/** Stored steps as sequences, limited to those with a return above the baseline. */
function replay(memory: ReplayMemory, most: number, weight: number, random: Random): Sequence[] {
  const baseline = memory.baseline()
  const better = memory.steps.filter(({ outcome }) => outcome > baseline)
  if (weight === 0) return []
  return random
    .fork("replay")
    .shuffled(better)
    .slice(0, most)
    .map(({ tokens, start, outcome, iteration: _, ...sampled }) =>
      stepSequence(tokens.subarray(0, start), tokens.subarray(start), {
        ...sampled,
        advantage: weight * (outcome - baseline),
      }),
    )
}

/** Steps that are already skipped, and steps of tasks whose returns differ less than those of the kept share. */
function narrow({ skip }: Credit, { task }: Batch, widths: Float64Array, share: number): Uint8Array | undefined {
  if (share === 1 || widths.length === 0) return skip
  const least = widths
    .slice()
    .sort()
    .at(-Math.ceil(share * widths.length))!
  return Uint8Array.from(task, (one, row) => (skip?.[row] === 1 || widths[one]! < least ? 1 : 0))
}

function meanOf(advantage: number | Float32Array): number {
  return typeof advantage === "number" ? advantage : advantage.reduce((sum, one) => sum + one, 0) / advantage.length
}
