import { mean } from "../../data/earned.ts"
import type { ActionEdge, StateGraph, StateNode } from "../../data/graph.ts"
import { drawing } from "../element.ts"
import { hundredths, signed, tone } from "../numbers.ts"
import { letter } from "./boxes.ts"
import { curve } from "./geometry.ts"
import type { Layout, Point } from "./layout.ts"

/** Line of an arrow's label: an action and its step advantage, if the state has several steps to compare. */
interface Line {
  readonly action: string
  readonly advantage: number | undefined
}

export interface LinkLabel {
  readonly lines: readonly Line[]
  readonly width: number
  readonly height: number
}

const mostLines = 2
/** Maximum number of characters of an action. */
export const longestAction = 18
export const lineHeight = 14

/**
 * Label for all actions between two boxes, the most frequent first.
 *
 * @param indices - indices of the actions in the graph
 * @param names - [edges] names of the actions
 */
export function labelOf(indices: readonly number[], { nodes, edges }: StateGraph, names: readonly string[]): LinkLabel {
  const sorted = indices.toSorted((a, b) => edges[b]!.places.length - edges[a]!.places.length)
  const lines = sorted.slice(0, mostLines).map((at): Line => {
    const edge = edges[at]!
    const isCompared = (nodes[edge.from] as StateNode).places.length > 1 && edge.stepAdvantage !== undefined
    return {
      action: names[at] || "(empty)",
      advantage: isCompared ? hundredths(edge.stepAdvantage) : undefined,
    }
  })
  if (sorted.length > mostLines) lines.push({ action: `${sorted.length - mostLines} more`, advantage: undefined })
  const letters = lines.map(
    ({ action, advantage }) => action.length + (advantage === undefined ? 0 : signed(advantage).length + 1),
  )
  return { lines, width: Math.max(...letters) * letter + 8, height: lines.length * lineHeight + 4 }
}

/** Mean step advantage of actions that are drawn as one arrow, weighted by frequency. */
export function meanAdvantage(edges: readonly ActionEdge[]): number | undefined {
  return mean(edges.flatMap(({ stepAdvantage, places }) => places.map(() => stepAdvantage)))
}

/** Arrow with its label, without colours. */
export function drawLink(label: LinkLabel, { points, label: at }: Layout["links"][number], wide: number): SVGGElement {
  const head = 6 + wide * 1.1
  const [tip, before] = [points.at(-1)!, points.at(-2)!]
  const angle = Math.atan2(tip.y - before.y, tip.x - before.x)
  const back = (side: number): Point => ({
    x: tip.x - head * Math.cos(angle) + side * Math.sin(angle),
    y: tip.y - head * Math.sin(angle) - side * Math.cos(angle),
  })
  const neck = back(0)
  const [left, right] = [back(head * 0.55), back(-head * 0.55)]
  const middle = at ?? points[Math.floor(points.length / 2)]!
  const group = drawing(
    "g",
    { class: "link" },
    drawing("path", { class: "line", d: curve([...points.slice(0, -1), neck]), "stroke-width": wide }),
    drawing("path", { class: "head", d: `M${left.x} ${left.y}L${tip.x} ${tip.y}L${right.x} ${right.y}z` }),
  )
  const { width, height } = label
  const pill = { x: middle.x - width / 2, y: middle.y - height / 2, width, height, rx: 5 }
  group.append(drawing("rect", { class: "pill", ...pill }))
  for (const [row, { action, advantage }] of label.lines.entries()) {
    const y = middle.y + (row - (label.lines.length - 1) / 2) * lineHeight + 4
    const text = drawing("text", { x: middle.x, y }, drawing("tspan", {}, action))
    if (advantage !== undefined) {
      text.append(" ", drawing("tspan", { class: `worth ${tone(advantage)}` }, signed(advantage)))
    }
    group.append(text)
  }
  return group
}
