import { groupByAnchor } from "./anchors.ts"
import type { Batch } from "./estimator.ts"
import { countGroups } from "./statistics.ts"
import { stepsAfter, stepsBefore } from "./turns.ts"

export type Arrivals = "largest" | "first"

/** Directed graph of the states that the episodes of each task visited. */
export interface StateGraph {
  /** Node before each step, [steps]. */
  readonly from: Int32Array
  /** Node after each step, [steps]; -1 if unknown or after an idle action. */
  readonly to: Int32Array
  /** Reward on arrival at each node, [nodes]. */
  readonly rewards: Float64Array
}

/**
 * Returns the state graph of a batch.
 *
 * @param options.arrivals which reward counts where a node has several
 * @param options.idleActions actions that are not edges
 */
export function stateGraph(
  batch: Batch,
  { arrivals, idleActions }: { readonly arrivals: Arrivals; readonly idleActions: readonly string[] },
): StateGraph {
  const { length, task, anchors, nextAnchors, steps } = batch
  const idle = new Set(idleActions)
  const known = nextAnchors.map((anchor, row) => anchor !== undefined && !idle.has(steps?.[row]?.action.trim() ?? ""))
  // The next state is usually the state of the next step. Only other texts are looked up.
  const after = stepsAfter(batch.episode)
  const others = Array.from(after.keys()).filter((row) => known[row] && nextAnchors[row] !== anchors[after[row]!])
  const nodes = groupByAnchor(
    [...task, ...others.map((row) => task[row]!)],
    [...anchors, ...others.map((row) => nextAnchors[row]!)],
  )
  const from = nodes.subarray(0, length)
  const to = after.map((next, row) => (known[row] && next >= 0 ? from[next]! : -1))
  for (const [index, row] of others.entries()) to[row] = nodes[length + index]!

  const rewards = new Float64Array(countGroups(nodes)).fill(Number.NaN)
  const arrive = (node: number, reward: number) => {
    if (Number.isNaN(rewards[node]!)) rewards[node] = reward
    else if (arrivals === "largest") rewards[node] = Math.max(rewards[node]!, reward)
  }
  for (const [row, before] of stepsBefore(batch.episode).entries()) {
    if (before < 0) arrive(from[row]!, 0)
    // Staying in a state is no arrival.
    if (to[row]! >= 0 && to[row] !== from[row]) arrive(to[row]!, batch.rewards[row]!)
  }
  return { from, to, rewards: rewards.map((reward) => (Number.isNaN(reward) ? 0 : reward)) }
}

/** Limit of the rounds that propagate losses. In cycles whose states have only losses, the values shrink forever without reaching 0. */
const mostRounds = 1000

/** Values V(s) = max(r(s), γ max V(successors of s)), [nodes], by rounds over all edges until nothing changes. */
export function flowValues({ from, to, rewards }: StateGraph, gamma: number): Float64Array {
  const edges = edgesOf(from, to, rewards.length)
  let values = rewards
  for (let round = 0; round < mostRounds; round++) {
    const better = values.slice()
    let changed = false
    for (let edge = 0; edge < edges.from.length; edge++) {
      const [source, handed] = [edges.from[edge]!, gamma * values[edges.to[edge]!]!]
      if (handed <= better[source]!) continue
      better[source] = handed
      changed = true
    }
    if (!changed) break
    values = better
  }
  return values
}

/** Distinct edges, without self-loops. */
function edgesOf(from: Int32Array, to: Int32Array, nodes: number): Pick<StateGraph, "from" | "to"> {
  const known = new Set<number>()
  const isNew = (row: number) => {
    if (to[row]! < 0 || to[row] === from[row]) return false
    const before = known.size
    return known.add(from[row]! * nodes + to[row]!).size > before
  }
  const rows = from.map((_, row) => (isNew(row) ? row : -1)).filter((row) => row >= 0)
  return { from: rows.map((row) => from[row]!), to: rows.map((row) => to[row]!) }
}
