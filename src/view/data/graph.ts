import { resultOf } from "../../rollout/outcome.ts"
import { advantageOf, mean, rewardsToGo, spread } from "./earned.ts"
import { Gathered } from "./gathered.ts"
import type { RecordedEpisode, RecordedGroup, RecordedStep } from "./recorded.ts"

// The states of a task as a graph: what GiGPO compares. A state's node is a step group, an edge an action that was taken from it, and each
// episode a path that ends in how it ended.

/** Which step of which episode of the group, both from 0. */
export interface StepPlace {
  readonly member: number
  readonly step: number
}

/** A step group: every step of the task that stood in this state. */
export interface StateNode {
  readonly kind: "state"
  readonly stepGroup: number
  /** As it was first seen; steps that are only similar may have seen it otherwise. */
  readonly observation: string
  readonly places: readonly StepPlace[]
  /** How many episodes stood here. */
  readonly episodes: number
  /** How many paths begin here. */
  readonly starts: number
  /** Mean and standard deviation of what was earned from here on; undefined where nobody's credit tells. */
  readonly mean: number | undefined
  readonly spread: number | undefined
  /** Mean step advantage of the best action from here less that of the worst; undefined where there are no two to compare. */
  readonly decision: number | undefined
}

/**
 * How an episode ended: success and failure where the environment tells of it, "ended" where it does not, "failed" where it took no part in
 * what was learned.
 */
export type Ending = (typeof endings)[number]

export const endings = ["success", "failure", "ended", "failed"] as const

/** The state after the last step, where episodes ended in the same way. */
export interface EndNode {
  readonly kind: "end"
  readonly ending: Ending
  /** What was observed there, where anybody told. */
  readonly observation: string | undefined
  /** Members whose paths end here. */
  readonly members: readonly number[]
  /** Mean undiscounted return of those. */
  readonly mean: number
}

export type GraphNode = StateNode | EndNode

/** An action that led from one node to another. */
export interface ActionEdge {
  /** Places in `nodes`. */
  readonly from: number
  readonly to: number
  readonly action: string
  readonly places: readonly StepPlace[]
  /** Mean step advantage; undefined where the estimator has none. */
  readonly stepAdvantage: number | undefined
  /** Mean of the whole advantage (of a step with one for each token, their mean). */
  readonly advantage: number | undefined
  /** How many of its steps were taken in episodes of each ending. */
  readonly endings: Readonly<Record<Ending, number>>
}

/** The way of one episode, or of one conversation of it. */
export interface EpisodePath {
  readonly member: number
  readonly conversation?: string | number
  readonly agent?: string | number
  readonly ending: Ending
  /** Undiscounted, of the episode. */
  readonly return: number
  /** Its steps' numbers in the episode. */
  readonly steps: readonly number[]
  /** Places in `nodes`, one more than steps: the last is how it ended. */
  readonly nodes: readonly number[]
  /** Places in `edges`, one a step. */
  readonly edges: readonly number[]
}

export interface StateGraph {
  /** States in the order in which they were first met, then ends. */
  readonly nodes: readonly GraphNode[]
  readonly edges: readonly ActionEdge[]
  readonly paths: readonly EpisodePath[]
  /** Whether `mean` of states is of discounted returns, as the estimator compared them, or of undiscounted rewards to go. */
  readonly discounted: boolean
}

interface Taken extends StepPlace {
  readonly recorded: RecordedStep
  readonly earned: number | undefined
}

/** What the episodes of a task did, state by state. Linear in the number of steps. */
export function stateGraph({ episodes }: RecordedGroup): StateGraph {
  const discounted = episodes.some(({ steps }) => steps.some((step) => step.discountedReturn !== undefined))
  const states = new Gathered<number, Taken>()
  const ends = new Gathered<string, RecordedEpisode>()
  const actions = new Gathered<string, Taken & { readonly ending: Ending }>()
  const ways = episodes.flatMap((episode) => {
    const earned = discounted ? episode.steps.map((step) => step.discountedReturn) : rewardsToGo(episode)
    const taken = episode.steps.map(
      (recorded, step): Taken => ({ member: episode.member, step, recorded, earned: earned[step] }),
    )
    return pathsOf(taken).map((steps) => ({
      episode,
      steps,
      nodes: steps.map((step) => states.add(step.recorded.stepGroup, step)),
    }))
  })
  const starts = new Map<number, number>()
  const paths = ways.map(({ episode, steps, nodes: stood }): EpisodePath => {
    const ending = endingOf(episode)
    starts.set(stood[0]!, (starts.get(stood[0]!) ?? 0) + 1)
    const end = ends.add(JSON.stringify([ending, episode.last?.anchor]), episode)
    const nodes = [...stood, states.size + end]
    const edges = steps.map((step, at) => {
      const key = JSON.stringify([nodes[at], nodes[at + 1], step.recorded.action])
      return actions.add(key, { ...step, ending })
    })
    const { conversation, agent } = steps[0]!.recorded
    return {
      member: episode.member,
      ...(conversation !== undefined && { conversation }),
      ...(agent !== undefined && { agent }),
      ending,
      return: episode.return,
      steps: steps.map(({ step }) => step),
      nodes,
      edges,
    }
  })
  const edges = actions.map((steps, key): ActionEdge => {
    const [from, to, action] = JSON.parse(key) as [number, number, string]
    return {
      from,
      to,
      action,
      places: steps.map(placeOf),
      stepAdvantage: mean(steps.map(({ recorded }) => recorded.stepAdvantage)),
      advantage: mean(steps.map(({ recorded }) => advantageOf(recorded))),
      endings: countEndings(steps),
    }
  })
  const decisions = decisionsOf(edges)
  return {
    nodes: [
      ...states.map((steps, stepGroup, at): StateNode => {
        const earned = steps.map((step) => step.earned)
        return {
          kind: "state",
          stepGroup,
          observation: steps[0]!.recorded.observation,
          places: steps.map(placeOf),
          episodes: new Set(steps.map(({ member }) => member)).size,
          starts: starts.get(at) ?? 0,
          mean: mean(earned),
          spread: spread(earned),
          decision: decisions.get(at),
        }
      }),
      ...ends.map(
        (over): EndNode => ({
          kind: "end",
          ending: endingOf(over[0]!),
          observation: over[0]!.last?.text,
          members: [...new Set(over)].map(({ member }) => member),
          mean: mean([...new Set(over)].map((episode) => episode.return))!,
        }),
      ),
    ],
    edges,
    paths,
    discounted,
  }
}

export function endingOf({ outcome, metrics }: Pick<RecordedEpisode, "outcome" | "metrics">): Ending {
  if (outcome === "failed" || outcome === "dropped") return "failed"
  const result = resultOf(metrics.success)
  return result === "untold" ? "ended" : result
}

/** Conversations, and agents, of an episode are ways of their own. */
function pathsOf(steps: readonly Taken[]): (readonly Taken[])[] {
  const paths = new Gathered<string, Taken>()
  for (const step of steps) paths.add(JSON.stringify([step.recorded.conversation, step.recorded.agent]), step)
  return paths.map((path) => path)
}

function placeOf({ member, step }: StepPlace): StepPlace {
  return { member, step }
}

function countEndings(steps: readonly { readonly ending: Ending }[]): Record<Ending, number> {
  const counts = { success: 0, failure: 0, ended: 0, failed: 0 }
  for (const { ending } of steps) counts[ending]++
  return counts
}

function decisionsOf(edges: readonly ActionEdge[]): Map<number, number> {
  const from = new Map<number, number[]>()
  for (const { from: node, stepAdvantage } of edges)
    if (stepAdvantage !== undefined) from.set(node, [...(from.get(node) ?? []), stepAdvantage])
  return new Map(
    [...from]
      .filter(([, advantages]) => advantages.length > 1)
      .map(([node, advantages]) => [node, Math.max(...advantages) - Math.min(...advantages)]),
  )
}
