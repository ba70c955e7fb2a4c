import { type Sequence, stepSequence } from "../engine/sequence.ts"
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
  minAdvantage: number(0, "Advantage above which a step enters the replay buffer."),
  capacity: integer(
    2048,
    "Size of the replay buffer in steps. Once more than 1.5 times as many of its steps are better than the baseline, this number of steps " +
      "is replayed and the buffer is emptied.",
    { min: 1 },
  ),
  maxAge: integer(
    10,
    "Maximum age of a step in the replay buffer, in iterations before the newest step of the buffer, whenever steps are added.",
    { min: 1, max: 10 },
  ),
  history: integer(10_240, "Number of past tasks whose median mean return is the baseline, at least 1.", { min: 1 }),
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
  keepGroups: number(0.75, "Share of tasks that are trained on, those whose returns differ most, in (0, 1].", {
    above: 0,
    max: 1,
  }),
}

/** Options of `spear`. */
export type SpearOptions = OptionsOf<typeof spearFields>

/**
 * Self-imitation (SPEAR, TencentYoutuResearch/SPEAR, its code for agents) around another estimator. Steps with an advantage above 0 enter
 * a replay buffer. When more than 1.5 times `capacity` of its steps have a return above the baseline, the median of the mean returns of
 * past tasks, `capacity` steps with a return of at least the baseline are drawn and trained on once more, with A = c (R(τ) - baseline),
 * and the buffer is emptied. This comes before the steps and tasks of the iteration are added. Not included: in the authors' code the
 * replayed steps follow in optimizer steps of their own, with clip-cov on these alone, and tool calls have a reward. Steps with images or
 * constraints are not stored.
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
    equation:
      "once more than 1.5 n stored steps (A > 0) have R > b, n of those with R ≥ b are replayed with R - b, and none is kept; b the median of the mean returns of past tasks",
    source: "TencentYoutuResearch/SPEAR",
    status: "partial",
    note: "Replayed steps share the optimizer steps of the iteration; the authors give them their own, with clip-cov. Their reward of tool calls is missing.",
  },
  make(options: SpearOptions = {}): Estimator {
    const inner = innerEstimator("spear", settle("spear", options, spearFields, outsideRuns).estimator)
    const memory = new ReplayMemory()
    const amended = wrapEstimator(inner, {
      name: "spear",
      change(credit, batch, { progress, random }) {
        const settings = settle("spear", options, spearFields, progress)
        const { minAdvantage, keepGroups, capacity } = settings
        const returns = episodeReturns(batch.rewards, batch.episode)
        const tasks = groupStatistics(returns, batch.task, firstSteps(batch.episode))
        const extraSequences = replay(memory, capacity, imitationWeight(progress.iteration + 1, settings), random)
        const skip = narrow(credit, batch, tasks.std, keepGroups)
        const isGood = (row: number) => skip?.[row] !== 1 && meanOf(credit.advantages[row]!) > minAdvantage
        memory.keep(remember(batch, returns, progress.iteration, isGood), Array.from(tasks.mean), settings)
        return {
          ...credit,
          ...(skip && { skip }),
          extraSequences: [...(credit.extraSequences ?? []), ...extraSequences],
          metrics: { ...credit.metrics, "replay/size": memory.steps.length, "replay/sequences": extraSequences.length },
        }
      },
    })
    return { ...amended, ...jointState(memory, inner) }
  },
})

/** Weight c ½ (1 - cos(π · iteration / warmup)) during warm-up, then c. Iterations count from 1. */
export function imitationWeight(
  iteration: number,
  { coefficient, warmup }: { readonly coefficient: number; readonly warmup: number },
): number {
  return iteration >= warmup ? coefficient : (coefficient * (1 - Math.cos((Math.PI * iteration) / warmup))) / 2
}

/** Steps of a full buffer as sequences, drawn from those with a return of at least the baseline. Empties a full buffer. */
function replay(memory: ReplayMemory, capacity: number, weight: number, random: Random): Sequence[] {
  const baseline = memory.baseline()
  const better = memory.steps.filter(({ outcome }) => outcome > baseline)
  if (better.length <= 1.5 * capacity) return []
  const good = memory.steps.filter(({ outcome }) => outcome >= baseline)
  memory.steps = []
  if (weight === 0) return []
  return random
    .derive("replay")
    .shuffled(good)
    .slice(0, capacity)
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
