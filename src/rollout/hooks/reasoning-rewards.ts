import { number } from "../../options/field.ts"
import { readOptions } from "../../options/read.ts"
import type { OptionsOf, ResolvedOf } from "../../options/table.ts"
import { largestReward } from "../../util/largest-reward.ts"
import { type Episode, type EpisodeStep, isScored } from "../episode.ts"
import type { RolloutHooks } from "../hooks.ts"

const within = { min: -largestReward, max: largestReward }

/** Options of `reasoningRewards`. */
export const reasoningRewardFields = {
  planning: number(1, "Reward of a plan in an episode with a return above 0.", within),
  explore: number(1, "Reward of an exploration whose action is new in the episode.", within),
  reflection: number(1, "Reward of a reflection after an invalid action, which acts differently.", within),
}

/** Options of `reasoningRewards`. */
export type ReasoningRewardsOptions = OptionsOf<typeof reasoningRewardFields>

/** Tags of reasoning, one of which a valid completion has in front of its action. */
const tags = ["planning", "explore", "reflection", "monitor"] as const

/**
 * Hook that rewards kinds of reasoning, for the estimator `rlvmr` (RLVMR, its code in zzjweb/digitalhuman). The memory `meta-reasoning` asks
 * for them. It reports two metrics of each step: `reasoning-reward`, and
 * `reasoning-tag`, 1 for <planning>, 2 for <explore>, 3
 * for <reflection> and 0 otherwise: <monitor> has no reward. A completion counts if its action could be parsed and if one of the four tags is
 * in front of it, once and not empty. Rewards of the environment are unchanged.
 *
 * - planning: rewarded if the return of the episode is above 0
 * - explore: rewarded if no earlier step with a completion that counts has the same action
 * - reflection: rewarded if the previous step does not count, or its action was not admissible, and its action was another one
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid option
 */
export function reasoningRewards(given: ReasoningRewardsOptions = {}): Pick<RolloutHooks, "score"> {
  const worth = readOptions("reasoningRewards", given, reasoningRewardFields)
  return {
    score: ({ episodes }) => episodes.map((episode) => (isScored(episode) ? withRewards(episode, worth) : episode)),
  }
}

function withRewards(episode: Episode, worth: ResolvedOf<typeof reasoningRewardFields>): Episode {
  const kinds = episode.steps.map(kindOf)
  const earned = (at: number): number => {
    const [kind, step] = [kinds[at], episode.steps[at]!]
    if (kind === "planning") return episode.return > 0 ? worth.planning : 0
    if (kind === "explore") {
      const isKnown = (other: EpisodeStep, index: number) => kinds[index] !== undefined && other.action === step.action
      return episode.steps.slice(0, at).some(isKnown) ? 0 : worth.explore
    }
    if (kind !== "reflection") return 0
    const before = episode.steps[at - 1]
    const worked =
      before && kinds[at - 1] !== undefined && before.observation.actions?.includes(before.action) !== false
    return worked || before?.action === step.action ? 0 : worth.reflection
  }
  const steps = episode.steps.map((step, at) => {
    const tag = tags.indexOf(kinds[at] ?? "monitor") + 1
    const own = { "reasoning-reward": earned(at), "reasoning-tag": tag % tags.length }
    return { ...step, metrics: { ...step.metrics, ...own } }
  })
  return { ...episode, steps }
}

/** Kind of reasoning of a completion that counts; undefined for another completion. */
function kindOf({ text, valid }: EpisodeStep): (typeof tags)[number] | undefined {
  if (!valid) return undefined
  const action = text.toLowerCase().indexOf("<action>")
  const found = tags.flatMap((tag) =>
    [...text.matchAll(new RegExp(`<${tag}>(.*?)</${tag}>`, "gis"))].map(({ index, 1: inner }) => ({
      tag,
      index,
      inner,
    })),
  )
  const [only] = found
  if (found.length !== 1 || only!.inner!.trim() === "" || (action >= 0 && only!.index > action)) return undefined
  return only!.tag
}
