import { resultOf } from "../../rollout/outcome.ts"
import { advantageOf, mean, rewardsToGo, spread } from "./earned.ts"
import { Gathered } from "./gathered.ts"
import type { RecordedEpisode, RecordedGroup, RecordedStep } from "./recorded.ts"

// State graph of a group, as GiGPO compares it. The node of a state is a step group, an edge is an action from it, and each episode is a path
// to an end node.

/** Step of an episode of the group, both from 0. */
export interface StepPlace {
  readonly member: number
  readonly step: number
}

/** Step group: all steps of the group in a state. */
export interface StateNode {
  readonly kind: "state"
  readonly stepGroup: number
  /** First observation of the state; similar steps may have other observations. */
  readonly observation: string
  readonly places: readonly StepPlace[]
  /** Number of episodes that visited the state. */
  readonly episodes: number
  /** Number of paths that begin in the state. */
  readonly starts: number
  /** Mean and standard deviation of the returns from the state; undefined without credit. */
  readonly mean: number | undefined
  readonly spread: number | undefined
  /** Range of the mean step advantages of the actions; undefined for fewer than two actions. */
  readonly decision: number | undefined
}

/**
 * Ending of an episode: success or failure if the environment reports it, else "ended"; "failed" for an episode that was not trained on.
 */
export type Ending = (typeof endings)[number]

export const endings = ["success", "failure", "ended", "failed"] as const

/** State after the last step of episodes with the same ending. */
export interface EndNode {
  readonly kind: "end"
  readonly ending: Ending
  /** Last observation, if known. */
  readonly observation: string | undefined
  /** Members whose paths end here. */
  readonly members: readonly number[]
  /** Mean undiscounted return of the members. */
  readonly mean: number
}

export type GraphNode = StateNode | EndNode

/** Action from one node to another. */
export interface ActionEdge {
  /** Indices in `nodes`. */
  readonly from: number
  readonly to: number
  readonly action: string
  readonly places: readonly StepPlace[]
  /** Mean step advantage; undefined if the estimator has none. */
  readonly stepAdvantage: number | undefined
  /** Mean advantage of the steps. */
  readonly advantage: number | undefined
  /** Number of steps in episodes of each ending. */
  readonly endings: Readonly<Record<Ending, number>>
}

/** Path of an episode, or of one of its conversations. */
export interface EpisodePath {
  readonly member: number
  readonly conversation?: string | number
  readonly agent?: string | number
  readonly ending: Ending
  /** Undiscounted return of the episode. */
  readonly return: number
  /** Step numbers in the episode. */
  readonly steps: readonly number[]
  /** Indices in `nodes`, one more than steps: the last is the end node. */
  readonly nodes: readonly number[]
  /** Indices in `edges`, one per step. */
  readonly edges: readonly number[]
}

export interface StateGraph {
  /** States in the order of first occurrence, then ends. */
  readonly nodes: readonly GraphNode[]
  readonly edges: readonly ActionEdge[]
  readonly paths: readonly EpisodePath[]
  /** Whether `mean` of states is that of discounted returns, as compared by the estimator, or of undiscounted rewards-to-go. */
  readonly discounted: boolean
}

interface Taken extends StepPlace {
  readonly recorded: RecordedStep
  readonly earned: number | undefined
}

/** State graph of a group. Takes linear time in the number of steps. */
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
  const edges = actions.map(actionEdge)
  const decisions = decisionsOf(edges)
  const stateNodes = states.map((steps, stepGroup, at) =>
    stateNode(steps, { stepGroup, starts: starts.get(at) ?? 0, decision: decisions.get(at) }),
  )
  return { nodes: [...stateNodes, ...ends.map(endNode)], edges, paths, discounted }
}

function actionEdge(steps: readonly (Taken & { readonly ending: Ending })[], key: string): ActionEdge {
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
}

function stateNode(steps: readonly Taken[], state: Pick<StateNode, "stepGroup" | "starts" | "decision">): StateNode {
  const earned = steps.map((step) => step.earned)
  return {
    kind: "state",
    ...state,
    observation: steps[0]!.recorded.observation,
    places: steps.map(placeOf),
    episodes: new Set(steps.map(({ member }) => member)).size,
    mean: mean(earned),
    spread: spread(earned),
  }
}

/** @param over - episodes that end here, once for each path. */
function endNode(over: readonly RecordedEpisode[]): EndNode {
  const episodes = [...new Set(over)]
  return {
    kind: "end",
    ending: endingOf(over[0]!),
    observation: over[0]!.last?.text,
    members: episodes.map(({ member }) => member),
    mean: mean(episodes.map((episode) => episode.return))!,
  }
}

export function endingOf({ outcome, metrics }: Pick<RecordedEpisode, "outcome" | "metrics">): Ending {
  if (outcome === "failed" || outcome === "excluded") return "failed"
  const result = resultOf(metrics.success)
  return result === "untold" ? "ended" : result
}

/** Paths of an episode, one per conversation and agent. */
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
