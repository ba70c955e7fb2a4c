import { stripVolatileText } from "../chat/normalize.ts"
import { gigpoAdvantages } from "../credit/gigpo.ts"
import { gigpoFields } from "../credit/options.ts"
import { field, integer } from "../options/field.ts"
import { readOptions } from "../options/read.ts"
import type { OptionsOf } from "../options/table.ts"
import { isScored } from "../rollout/episode.ts"
import type { Group } from "../rollout/hooks.ts"
import { isVaried } from "../rollout/varied.ts"
import { type LimitShares, lengthAgainst, limitShares, wastedShare } from "./episode-shares.ts"
import { collectSteps, learnedEpisodes } from "./steps.ts"

export const anchorCoverageFields = {
  gamma: gigpoFields.gamma,
  similarity: gigpoFields.similarity,
  expertSteps: field(
    undefined as readonly (number | undefined)[] | undefined,
    "Steps in which an expert solved each group's task; undefined for one that it did not solve.",
    (value) =>
      value === undefined || (Array.isArray(value) && value.every((steps) => steps === undefined || steps > 0))
        ? undefined
        : "must be a list of numbers of steps, at least 1, or undefined",
  ),
  frequent: integer(5, "Number of most frequent anchors to report.", { min: 0 }),
}

/** Options of `anchorCoverage`. */
export type AnchorCoverageOptions = OptionsOf<typeof anchorCoverageFields>

/**
 * How often the states of a group's episodes are the same, on which GiGPO's finer credit rests, and what there is to be told apart. Shares
 * are from 0 to 1.
 */
export interface AnchorCoverage extends LimitShares {
  readonly groups: number
  /** Groups whose episodes all came to the same return, which teach nothing. */
  readonly constant: number
  /** Episodes that can be learned from, and those that failed or were dropped. */
  readonly episodes: number
  readonly unscored: number
  readonly steps: number
  /** Step groups: the distinct states of each group. */
  readonly states: number
  /** Share of the steps that are in a step group of two or more. */
  readonly grouped: number
  /** Share of the steps whose state another episode of the group has seen, too; and of those that are not their episode's first. */
  readonly shared: number
  readonly sharedLater: number
  /** The last share, were times, UUIDs and ids of calls left out of anchors (`stripVolatileText`). */
  readonly sharedWithoutNoise: number
  /** Share of the steps in step groups whose discounted returns differ; and of those in such groups where two episodes meet. */
  readonly compared: number
  readonly comparedAcross: number
  /** How many times as long as an expert's the episodes are; absent where none is known to have solved the tasks. */
  readonly length?: number
  /** Share of the steps of successful episodes that led back to where they had been; absent without a success. */
  readonly wasted?: number
  readonly frequent: readonly AnchorCount[]
  /** What GiGPO can make of it, and what to do where that is little. */
  readonly finding: AnchorFinding
}

/** How often one anchor occurs. */
export interface AnchorCount {
  readonly anchor: string
  /** In how many steps, episodes and groups it occurs. */
  readonly steps: number
  readonly episodes: number
  readonly groups: number
}

/** One observation about anchors, with advice. */
export interface AnchorFinding {
  /** Whether steps are compared beyond what comparing whole episodes (GRPO) does. */
  readonly compares: boolean
  /** Sentences. */
  readonly text: string
}

/** Looks at the anchors of played groups: those of `rollout`, or of an observer of training. */
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
  const { stepGroups: states, singletonShare, comparedShare, comparedAcrossShare } = seen!.diagnostics
  const length = lengthAgainst(members, expertSteps)
  const wasted = wastedShare(learnedEpisodes(members, 1), seen!.stepGroups)
  const found = {
    ...{ groups: groups.length, constant: groups.filter((group) => !isVaried(group)).length },
    ...{ episodes: scored, unscored: episodes.length - scored, steps: steps.length, states },
    grouped: steps.length === 0 ? 0 : 1 - singletonShare,
    ...sharedBetweenEpisodes(steps, seen!.stepGroups),
    sharedWithoutNoise: sharedBetweenEpisodes(clean, quiet!.stepGroups).sharedLater,
    ...{ compared: comparedShare, comparedAcross: comparedAcrossShare },
    ...(length !== undefined && { length }),
    ...(wasted !== undefined && { wasted }),
    ...limitShares(episodes),
    frequent: mostFrequent(steps, settings.frequent),
  }
  return { ...found, finding: find(found, steps) }
}

/** A step, by where it was taken and what was seen there. */
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
  "Say in which state the agent is before each call: step({ anchor }), or POST /gigpo/step (agent.control), with what the environment is like and not " +
  "how it came about"
const asGrpo = "the advantages are those of GRPO"

function find(found: Omit<AnchorCoverage, "finding">, steps: readonly Seen[]): AnchorFinding {
  const { groups, constant, states, sharedLater, sharedWithoutNoise } = found
  const nothing = (text: string) => ({ compares: false, text })
  if (steps.length === 0) return nothing("No episode came to a step that can be learned from: mend the agent first.")
  if (constant === groups)
    return nothing(
      "The episodes of every group came to the same return, so that nothing can be compared, whatever the anchors: take tasks that are " +
        "solved now and then, a finer reward, or more episodes a group.",
    )
  const later = steps.filter((_, index) => !beginsEpisode(steps, index))
  if (later.length === 0)
    return nothing(`Episodes have one step, so that there is nothing finer than an episode: ${asGrpo}.`)
  const noisy = sharedWithoutNoise > sharedLater
  const noise = noisy
    ? ` Without times, UUIDs and ids of calls it would be ${percent(sharedWithoutNoise)}: set agent.normalize, or in code normalize: stripVolatileText.`
    : ""
  if (sharedLater === 0)
    return nothing(
      `GiGPO can compare nothing but where episodes begin: no later state was seen by two episodes of a group, and ${asGrpo}.${noise} ${sayState}.`,
    )
  const tasks = new Set(steps.map(({ task }) => task)).size
  if (states === tasks)
    return nothing(
      `All steps of a group have the same anchor, which says nothing about the state: steps are compared with what has nothing to do with them. ${sayState}.`,
    )
  const text = `${percent(sharedLater)} of the steps behind the first were taken in a state that another episode of the group has seen, too.`
  if (sharedLater >= fewShared) return { compares: true, text: text + (noisy ? noise : "") }
  return { compares: true, text: `${text} That is little.${noise} ${sayState}.` }
}

/** Below this share GiGPO's finer credit hardly counts beside the episode's. */
const fewShared = 0.1

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`
}
