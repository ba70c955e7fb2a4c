import { type Sequence, stepSequence } from "../engine/sequence.ts"
import { clipCov } from "../loss/clip-cov.ts"
import { clipFields } from "../loss/options.ts"
import { group, integer, number, scheduled } from "../options/field.ts"
import type { OptionsOf } from "../options/table.ts"
import type { Random } from "../util/random.ts"
import { estimate } from "./as-estimator.ts"
import { defineEstimator } from "./define-estimator.ts"
import type { Batch, Credit, Estimator } from "./estimator.ts"
import { jointState } from "./joint-state.ts"
import { innerEstimator, ofFields } from "./of-estimator.ts"
import { outsideRuns, settle } from "./options.ts"
import { firstSteps } from "./outcomes.ts"
import { remember } from "./remember.ts"
import { ReplayMemory } from "./replay-memory.ts"
import { episodeReturns } from "./returns.ts"
import { type GroupStatistics, groupStatistics } from "./statistics.ts"
import { withTurnRewards } from "./turn-rewards.ts"

/** Options of `spear`. The defaults are those of the authors' runs on ALFWorld and WebShop, unless stated. */
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
    "Maximum age of a step in the replay buffer, in iterations before the newest step of the buffer, whenever steps are added. The " +
      "authors' runs have 5.",
    { min: 1, max: 10 },
  ),
  history: integer(10_240, "Number of past tasks whose median mean return is the baseline, at least 1.", { min: 1 }),
  coefficient: scheduled(
    number(1, "Weight of the loss of replayed steps relative to that of an iteration's steps, at least 0.", { min: 0 }),
  ),
  warmup: integer(
    200,
    "Iterations over which the weight of replayed steps grows from 0, by half a cosine. 0 turns the warm-up off.",
    {
      min: 0,
    },
  ),
  replayLoss: group(
    {
      ...clipFields(0.2, 0.28),
      covarianceShare: scheduled(
        number(0.02, "Share of the tokens of an update that are dropped at most; at least one token.", {
          above: 0,
          max: 1,
        }),
      ),
      covarianceLow: scheduled(number(2, "Covariance above which tokens may be dropped.")),
      covarianceHigh: scheduled(number(60, "Covariance below which tokens may be dropped.")),
    },
    "Loss of replayed steps: Clip-Cov.",
  ),
  turnReward: scheduled(
    number(0.1, "Reward of an episode for each of its steps, at most 1 in total, before its decay. 0 turns it off.", {
      min: 0,
    }),
  ),
  turnRewardDecay: integer(200, "Iterations over which turnReward decays to 0, by half a cosine.", { min: 1 }),
  keepGroups: number(
    0.75,
    "Share of tasks that are trained on, those whose returns differ most, in (0, 1]; at least one task.",
    {
      above: 0,
      max: 1,
    },
  ),
}

/** Options of `spear`. */
export type SpearOptions = OptionsOf<typeof spearFields>

/**
 * Self-imitation (SPEAR, arXiv 2509.22601, and the authors' code for agents) around another estimator.
 *
 * Returns include a reward for the number of steps T of the episode, d min(1, 0.1 T). Its factor d decays from 1 to 0. Only the return of
 * the episode includes it, so GiGPO's returns of steps do not. Of the tasks, the share `keepGroups` with the largest standard deviation of
 * returns is trained on; the other tasks are skipped.
 *
 * Steps with an advantage above 0 enter a replay buffer. When more than 1.5 times `capacity` of its steps have a return above the
 * baseline b, the median of the mean returns of past tasks, `capacity` steps with R(τ) ≥ b are drawn, and the buffer is emptied. This comes
 * before the steps and tasks of the iteration are added. The drawn steps have A = R(τ) - b. In each epoch they follow the other steps in
 * updates of their own, with c times the loss `clipCov` (`replayLoss`); c grows from 0. Steps with images or constraints are not stored.
 *
 * @throws BAD_ARGUMENT for an invalid option, or steps without tokens
 */
export const spear = defineEstimator({
  name: "spear",
  fields: spearFields,
  about: {
    system: "SPEAR",
    origin: "relative",
    changes: ["credit", "data", "reward", "loss"],
    equation:
      "R(τ) + d min(1, 0.1 T); once more than 1.5 n stored steps (A > 0) have R > b, n of those with R ≥ b get updates of their own with c · clip-cov of A = R - b, and none is kept; b the median of the mean returns of past tasks",
    source: "arXiv 2509.22601, TencentYoutuResearch/SPEAR",
    set: { "training.loss.name": "clip-cov", "training.loss.clipLow": 0.2, "training.loss.clipHigh": 0.28 },
    status: "exact",
    note: "The authors' code for agents, where T counts steps as tool calls. Left out: its random removal of steps down to a power of two, and the filters of completions of its baseline, Dr.BoT. Clip-Cov's means are over an update, theirs over a micro-batch; the history of b is cut by task, theirs by iteration; maxAge is 10, 5 in its scripts.",
  },
  make(options: SpearOptions = {}): Estimator {
    const first = settle("spear", options, spearFields, outsideRuns)
    const inner = innerEstimator("spear", first.estimator)
    const loss = clipCov(first.replayLoss)
    const memory = new ReplayMemory()
    return {
      name: "spear",
      ...(inner.needs && { needs: inner.needs }),
      groups: inner.groups,
      async estimate(plain, context) {
        const { iteration } = context.progress
        const settings = settle("spear", options, spearFields, context.progress)
        const { minAdvantage, keepGroups, capacity, turnReward, turnRewardDecay } = settings
        const decay = 1 - imitationWeight(iteration + 1, { coefficient: 1, warmup: turnRewardDecay })
        const batch = withTurnRewards(plain, turnReward, decay)
        const credit = await estimate(inner, batch, context)
        const returns = episodeReturns(batch.rewards, batch.episode)
        const tasks = groupStatistics(returns, batch.task, firstSteps(batch.episode))
        const weight = imitationWeight(iteration + 1, settings)
        const sequences = replay(memory, capacity, weight, context.random)
        const kept = widestTasks(tasks, keepGroups)
        const skip = narrow(credit, batch, kept)
        const isGood = (row: number) => skip?.[row] !== 1 && meanOf(credit.advantages[row]!) > minAdvantage
        const means = Array.from(tasks.mean).filter((_, task) => kept[task] === 1)
        memory.keep(remember(batch, returns, iteration, isGood), means, settings)
        return {
          ...credit,
          ...(skip && { skip }),
          ...(sequences.length > 0 && { replay: { sequences, loss, weight } }),
          metrics: { ...credit.metrics, "replay/size": memory.steps.length, "replay/sequences": sequences.length },
        }
      },
      ...jointState(memory, inner),
    }
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
      stepSequence(tokens.subarray(0, start), tokens.subarray(start), { ...sampled, advantage: outcome - baseline }),
    )
}

/** 1 for the share of tasks with the largest population standard deviation of returns, [tasks]. Of equal ones the first are kept. */
function widestTasks({ std, size }: GroupStatistics, share: number): Uint8Array {
  const width = std.map((one, task) => one * Math.sqrt(1 - 1 / size[task]!))
  const order = [...width.keys()].sort((a, b) => width[b]! - width[a]!)
  const kept = new Uint8Array(width.length)
  for (const task of order.slice(0, Math.max(1, Math.floor(share * width.length)))) kept[task] = 1
  return kept
}

/** Steps that are already skipped, and steps of tasks that are not kept. */
function narrow({ skip }: Credit, { task }: Batch, kept: Uint8Array): Uint8Array | undefined {
  if (kept.every((one) => one === 1)) return skip
  return Uint8Array.from(task, (one, row) => (skip?.[row] === 1 || kept[one] === 0 ? 1 : 0))
}

function meanOf(advantage: number | Float32Array): number {
  return typeof advantage === "number" ? advantage : advantage.reduce((sum, one) => sum + one, 0) / advantage.length
}
