import { stripVolatileText } from "../chat/normalize.ts"
import { gigpoAdvantages } from "../credit/gigpo.ts"
import { gigpoFields } from "../credit/options.ts"
import { field, integer } from "../options/field.ts"
import { readOptions } from "../options/read.ts"
import type { OptionsOf } from "../options/table.ts"
import { isScored } from "../rollout/episode.ts"
import type { Group } from "../rollout/hooks.ts"
import { isVaried } from "../rollout/varied.ts"
import { type LimitShares, lengthAgainst, limitShares, loopShare } from "./episode-shares.ts"
import { collectSteps, learnedEpisodes } from "./steps.ts"

export const anchorCoverageFields = {
  gamma: gigpoFields.gamma,
  similarity: gigpoFields.similarity,
  expertSteps: field(
    undefined as readonly (number | undefined)[] | undefined,
    "Number of steps in which an expert solved each group's task; undefined for an unsolved task.",
    (value) =>
      value === undefined || (Array.isArray(value) && value.every((steps) => steps === undefined || steps > 0))
        ? undefined
        : "must be a list of numbers of steps, at least 1, or undefined",
  ),
  frequent: integer(5, "Number of the most frequent anchor states to report.", { min: 0 }),
}

/** Options of `anchorCoverage`. */
export type AnchorCoverageOptions = OptionsOf<typeof anchorCoverageFields>

/**
 * Coverage of anchor states in groups of episodes: how many steps GiGPO can compare. Shares are from 0 to 1.
 */
export interface AnchorCoverage extends LimitShares {
  /** Number of groups. */
  readonly groups: number
  /** Number of groups whose episodes all have the same return. Their advantages are 0. */
  readonly constant: number
  /** Number of episodes that can be trained on. */
  readonly episodes: number
  /** Number of failed and excluded episodes. */
  readonly unscored: number
  /** Number of steps of the episodes that can be trained on. */
  readonly steps: number
  /** Number of step groups: distinct anchor states per group, summed over groups. */
  readonly states: number
  /** Share of steps in a step group of at least two steps. */
  readonly grouped: number
  /** Share of steps whose anchor state occurs in another episode of the group. */
  readonly shared: number
  /** `shared` over all steps except the first step of each episode. */
  readonly sharedLater: number
  /** `sharedLater` after removal of times, UUIDs and call ids from anchor states (`stripVolatileText`). */
  readonly sharedNormalized: number
  /** Share of steps in step groups whose discounted returns differ. */
  readonly nonzero: number
  /** Share of all steps in step groups whose discounted returns differ and that contain steps of at least two episodes. */
  readonly nonzeroAcross: number
  /** Length of the episodes divided by that of an expert's episodes. Absent if no task has a number of expert steps. */
  readonly length?: number
  /** Share of the steps of successful episodes that belong to loops back to an earlier state. Absent without a success. */
  readonly loopSteps?: number
  /** Most frequent anchor states. */
  readonly frequent: readonly AnchorCount[]
  /** Assessment of the coverage, with advice. */
  readonly finding: AnchorFinding
}

/** Frequency of one anchor state. */
export interface AnchorCount {
  /** The anchor state. */
  readonly anchor: string
  /** Number of steps with the anchor state. */
  readonly steps: number
  /** Number of episodes with the anchor state. */
  readonly episodes: number
  /** Number of groups with the anchor state. */
  readonly groups: number
}

/** Assessment of anchor coverage, with advice. */
export interface AnchorFinding {
  /** Whether GiGPO compares steps, in addition to the comparison of whole episodes as in GRPO. */
  readonly compares: boolean
  /** Text of one or more sentences. */
  readonly text: string
}

/**
 * Measures the anchor coverage of groups, from `rollout` or from an observer of a training run.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid option.
 */
export function anchorCoverage(groups: readonly Group[], options: AnchorCoverageOptions = {}): AnchorCoverage {
  const settings = readOptions("anchorCoverage", options, anchorCoverageFields)
  const { gamma, similarity, expertSteps = [] } = settings
  const members = groups.map((group) => group.episodes)
  const episodes = members.flat()
  const scored = episodes.filter(isScored).length
  const steps: Seen[] = collectSteps(members).map(({ task, episode, reward, record }) => ({
    ...{ task, episode, reward, anchor: record.observation.anchor },
  }))
  const clean = steps.map((step) => ({ ...step, anchor: stripVolatileText(step.anchor) }))
  const [seen, quiet] = [steps, clean].map((those) => gigpoAdvantages(those, { gamma, similarity }))
  const { stepGroups: states, singletonShare, nonzeroShare, nonzeroAcrossShare } = seen!.diagnostics
  const length = lengthAgainst(members, expertSteps)
  const loopSteps = loopShare(learnedEpisodes(members, 1), seen!.stepGroups)
  const found = {
    ...{ groups: groups.length, constant: groups.filter((group) => !isVaried(group)).length },
    ...{ episodes: scored, unscored: episodes.length - scored, steps: steps.length, states },
    grouped: steps.length === 0 ? 0 : 1 - singletonShare,
    ...sharedBetweenEpisodes(steps, seen!.stepGroups),
    sharedNormalized: sharedBetweenEpisodes(clean, quiet!.stepGroups).sharedLater,
    ...{ nonzero: nonzeroShare, nonzeroAcross: nonzeroAcrossShare },
    ...(length !== undefined && { length }),
    ...(loopSteps !== undefined && { loopSteps }),
    ...limitShares(episodes),
    frequent: mostFrequent(steps, settings.frequent),
  }
  return { ...found, finding: find(found, steps) }
}

/** Step with its place in the groups and its anchor state. */
interface Seen {
  readonly task: string | number
  readonly episode: string | number
  readonly anchor: string
  readonly reward: number
}

function sharedBetweenEpisodes(steps: readonly Seen[], ids: Int32Array) {
  const first = new Map<number, string | number>()
  const shared = new Set<number>()
  for (const [index, { episode }] of steps.entries()) {
    const id = ids[index]!
    if (!first.has(id)) first.set(id, episode)
    else if (first.get(id) !== episode) shared.add(id)
  }
  const share = (of: readonly number[]) =>
    of.length === 0 ? 0 : of.filter((index) => shared.has(ids[index]!)).length / of.length
  const all = Array.from(steps.keys())
  return { shared: share(all), sharedLater: share(all.filter((index) => !beginsEpisode(steps, index))) }
}

function beginsEpisode(steps: readonly Seen[], index: number): boolean {
  const [before, now] = [steps[index - 1], steps[index]!]
  return before?.task !== now.task || before.episode !== now.episode
}

function mostFrequent(steps: readonly Seen[], most: number): AnchorCount[] {
  const counts = new Map<string, { steps: number; episodes: Set<string>; groups: Set<unknown> }>()
  for (const { anchor, task, episode } of steps) {
    const count = counts.get(anchor) ?? { steps: 0, episodes: new Set(), groups: new Set() }
    counts.set(anchor, count)
    count.steps++
    count.episodes.add(`${task}/${episode}`)
    count.groups.add(task)
  }
  return [...counts]
    .sort(([, a], [, b]) => b.steps - a.steps)
    .slice(0, most)
    .map(([anchor, { steps, episodes, groups }]) => ({ anchor, steps, episodes: episodes.size, groups: groups.size }))
}

const sayState =
  "Report the anchor state before each call: step({ anchor }), or POST /gigpo/step (agent.control). An anchor state describes the " +
  "environment as it is, not the history that led to it"
const asGrpo = "the advantages are those of GRPO"

function find(found: Omit<AnchorCoverage, "finding">, steps: readonly Seen[]): AnchorFinding {
  const { groups, constant, states, sharedLater, sharedNormalized } = found
  const nothing = (text: string) => ({ compares: false, text })
  if (steps.length === 0) return nothing("No episode has a step that can be trained on: fix the agent first.")
  if (constant === groups)
    return nothing(
      "The episodes of each group have the same return, so all advantages are 0 for any anchor states: use tasks that are solved " +
        "sometimes, a finer reward, or more episodes per group.",
    )
  const later = steps.filter((_, index) => !beginsEpisode(steps, index))
  if (later.length === 0) return nothing(`All episodes have a single step, so step advantages add nothing: ${asGrpo}.`)
  const noisy = sharedNormalized > sharedLater
  const noise = noisy
    ? ` Without times, UUIDs and call ids the share would be ${percent(sharedNormalized)}: set agent.normalize, or in code normalize: stripVolatileText.`
    : ""
  if (sharedLater === 0)
    return nothing(
      `GiGPO can compare only the first steps of episodes: no later state occurs in two episodes of a group, and ${asGrpo}.${noise} ${sayState}.`,
    )
  const tasks = new Set(steps.map(({ task }) => task)).size
  if (states === tasks)
    return nothing(
      `All steps of a group have the same anchor state, so unrelated steps are compared with each other. ${sayState}.`,
    )
  const text = `${percent(sharedLater)} of the steps after the first were taken in a state that also occurs in another episode of the group.`
  if (sharedLater >= fewShared) return { compares: true, text: text + (noisy ? noise : "") }
  return { compares: true, text: `${text} This is a low share.${noise} ${sayState}.` }
}

/** Share below which step advantages have little effect compared with episode advantages. */
const fewShared = 0.1

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`
}
