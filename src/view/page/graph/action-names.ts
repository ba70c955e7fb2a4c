import { Gathered } from "../../data/gathered.ts"
import type { ActionEdge } from "../../data/graph.ts"
import { actionText } from "../../data/tool-calls.ts"
import { oneLine, shortNames } from "./short-names.ts"

/** Maximum number of characters of an action in a list. */
const longestAction = 60

/** Action in one line of a list or table: `query · SELECT 1`. */
export function actionLine(action: string, longest = longestAction): string {
  return oneLine(actionText(action), longest)
}

/**
 * [edges] Short names of actions for arrows: without the words with which all actions of the graph begin. Actions of a state that would have
 * equal names are named by what distinguishes them.
 */
export function actionNames(edges: readonly ActionEdge[], longest: number): string[] {
  const names = namesOf(
    edges.map(({ action }) => action),
    longest,
  )
  const states = new Gathered<number, number>()
  for (const [at, { from }] of edges.entries()) states.add(from, at)
  for (const own of states.map((edgesOf) => edgesOf)) {
    const actions = own.map((at) => edges[at]!.action)
    if (new Set(own.map((at) => names[at])).size === new Set(actions).size) continue
    const better = namesOf(actions, longest)
    for (const [place, at] of own.entries()) names[at] = better[place]!
  }
  return names
}

function namesOf(actions: readonly string[], longest: number): string[] {
  return shortNames(actions.map(actionText), longest)
}
