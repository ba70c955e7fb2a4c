import { list, number, oneOf, required, string } from "../options/field.ts"
import { without } from "../options/fixed.ts"
import type { OptionsOf } from "../options/table.ts"
import { GigpoError } from "../util/errors.ts"
import { defineEstimator } from "./define-estimator.ts"
import { episodeMetrics } from "./diagnostics.ts"
import type { Batch, Estimator, StepCredit } from "./estimator.ts"
import { episodeLevel } from "./grpo.ts"
import { normalizerOf } from "./normalizer.ts"
import { metricOf } from "./of-steps.ts"
import { grpoFields, outsideRuns, settle } from "./options.ts"
import { firstSteps, groupsOf } from "./outcomes.ts"
import { payPenalties } from "./penalties.ts"
import { episodeReturns } from "./returns.ts"
import { groupStatistics } from "./statistics.ts"
import { whiten } from "./whiten.ts"

const names = list(
  ["reward"],
  required(string(undefined, "")),
  "Reward channels: `reward` is the reward of the environment, any other name a metric of steps, which is summed " +
    "over the episode and counts as 0 where missing.",
)

/** Options of `gdpo`. */
export const gdpoFields = {
  channels: {
    ...names,
    validate: (value: unknown) =>
      names.validate(value) ??
      (isSet(value as readonly string[]) ? undefined : "must name at least one channel, each once"),
  },
  weights: list(
    [],
    required(number(undefined, "")),
    "Weights of the channels, in their order. An empty list gives all channels the weight 1.",
  ),
  whitenOver: oneOf(
    "tokens",
    ["tokens", "episodes"],
    "Items of the whitening of the summed channels: all sampled tokens, divided by √(variance + 1e-8), as in the authors' verl; or " +
      "all episodes, divided by the standard deviation + 1e-4, as in their TRL, whose epsilon is 1e-4, too.",
  ),
  ...without(grpoFields, "normalization"),
}

/** Options of `gdpo`. */
export type GdpoOptions = OptionsOf<typeof gdpoFields>

/**
 * Group reward-decoupled normalization (GDPO, arXiv 2601.05242): A = Σ_k w_k A_k, then whitened over the batch. A_k is the GRPO
 * advantage of reward channel k alone. Channels with small or few distinct values therefore keep their influence, which they lose where
 * rewards are summed first. The invalid-action penalty belongs to the channel `reward`.
 *
 * @throws BAD_ARGUMENT for an invalid option, or where the number of weights differs from the number of channels
 */
export const gdpo = defineEstimator({
  name: "gdpo",
  fields: gdpoFields,
  about: {
    system: "GDPO",
    origin: "relative",
    changes: ["credit", "reward"],
    equation: "A = whitened Σ_k w_k A_k, A_k the GRPO advantage of reward k alone",
    source: "arXiv 2601.05242; NVlabs/GDPO",
    set: { "training.estimator.channels": ["reward", "success"] },
    status: "exact",
    note: "`channels` are metrics of the environment's steps. The defaults are those of the authors' verl; `whitenOver: episodes` and `epsilon: 1e-4` are their TRL.",
  },
  make(options: GdpoOptions = {}): Estimator<StepCredit> {
    const { channels, weights, singletonEpisode } = settle("gdpo", options, gdpoFields, outsideRuns)
    if (weights.length > 0 && weights.length !== channels.length)
      throw new GigpoError(
        "BAD_ARGUMENT",
        `gdpo: there are ${weights.length} weights for ${channels.length} channels; give one per channel, or none.`,
      )
    return {
      name: "gdpo",
      groups: groupsOf({ singletonEpisode }),
      estimate(batch, { progress }) {
        const settings = { ...settle("gdpo", options, gdpoFields, progress), normalization: "sample" as const }
        const total = new Float64Array(batch.length)
        const metrics: Record<string, number> = {}
        for (const [k, channel] of channels.entries()) {
          const paid =
            channel === "reward" ? payPenalties(batch, settings) : { rewards: channelOf(batch, channel), score: same }
          const { advantages, ...groups } = episodeLevel(batch, settings, paid)
          for (const [row, value] of advantages.entries()) total[row]! += (weights[k] ?? 1) * value
          metrics[`group/constant-${channel}`] = episodeMetrics(groups)["group/constant"]!
        }
        return {
          advantages: settings.whitenOver === "tokens" ? whiten(total, batch.lengths) : amongEpisodes(total, batch),
          metrics,
          details: { episodeReturns: episodeReturns(batch.rewards, batch.episode) },
        }
      },
    }
  },
})

/** Whitening over episodes, each of which counts once. */
function amongEpisodes(values: Float64Array, { episode }: Batch): Float64Array {
  const all = new Int32Array(values.length)
  return normalizerOf({ std: "sample", epsilon: 1e-4 })(values, all, groupStatistics(values, all, firstSteps(episode)))
}

const channelOf = (batch: Batch, name: string) =>
  metricOf(batch, name, "gdpo", 0, 'Name one of them, or "reward", in channels.')

const same = (values: Float64Array) => values

function isSet(values: readonly string[]): boolean {
  return values.length > 0 && new Set(values).size === values.length
}
