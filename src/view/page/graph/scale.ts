import type { Ending, StateGraph, StateNode } from "../../data/graph.ts"

/** Quantities that the colours of states can show, with their labels. */
export const colourings = {
  return: "Mean return",
  advantage: "Range of step advantages",
  visits: "Visits",
} as const

export type Colouring = keyof typeof colourings

/** Colour scale: maps `least` to -1, `middle` to 0 and `most` to 1. A one-sided scale begins at 0. */
export interface Scale {
  readonly least: number
  readonly middle: number
  readonly most: number
}

export function stateValue(node: StateNode, colouring: Colouring): number | undefined {
  return { return: node.mean, advantage: node.decision, visits: node.places.length }[colouring]
}

/**
 * Scale of the states' values. Returns have a two-sided scale around the mean of the group's steps, or a one-sided scale if all episodes
 * succeeded or all failed. Visits and advantages have a one-sided scale from 0.
 */
export function stateScale({ nodes, paths }: StateGraph, colouring: Colouring): Scale {
  let [least, most, sum, visits] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0, 0]
  for (const node of nodes) {
    const value = node.kind === "state" ? stateValue(node, colouring) : undefined
    if (node.kind === "end" || value === undefined) continue
    least = Math.min(least, value)
    most = Math.max(most, value)
    sum += value * node.places.length
    visits += node.places.length
  }
  if (visits === 0) return { least: 0, middle: 0, most: 0 }
  if (colouring !== "return") return { least: 0, middle: 0, most }
  const all = (ending: Ending) => paths.every((path) => path.ending === ending)
  return { least, middle: all("success") ? least : all("failure") ? most : sum / visits, most }
}

/** Symmetric scale of the step advantages around 0. */
export function advantageScale({ edges }: StateGraph): Scale {
  const most = Math.max(0, ...edges.map(({ stepAdvantage }) => Math.abs(stepAdvantage ?? 0)))
  return { least: -most, middle: 0, most }
}

export function toneOf(value: number | undefined, { least, middle, most }: Scale): number {
  if (value === undefined) return 0
  const side = value < middle ? middle - least : most - middle
  return side === 0 ? 0 : Math.max(-1, Math.min(1, (value - middle) / side))
}
