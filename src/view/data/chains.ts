import type { StateGraph } from "./graph.ts"

/** Folded graph: a box is one node, or a chain of consecutive nodes that only one episode visited. */
export interface Folded {
  /** Indices in the graph's `nodes`, in time order, [boxes]. */
  readonly boxes: readonly (readonly number[])[]
  /** Box of each node, [nodes]. */
  readonly boxOf: readonly number[]
  /** Links between two boxes with the indices of their `edges`. Edges within a chain are not included. */
  readonly links: readonly { readonly from: number; readonly to: number; readonly edges: readonly number[] }[]
}

/** Minimum length of a chain; shorter ones are not folded. */
const shortestChain = 3

/**
 * Folds states that only one episode visited, so that shared states, whose actions can be compared, are easier to see.
 *
 * @param opened - nodes whose chains are not folded
 */
export function foldChains({ nodes, edges, paths }: StateGraph, opened: ReadonlySet<number> = new Set()): Folded {
  const isAlone = nodes.map((node) => node.kind === "state" && node.places.length === 1 && node.starts === 0)
  const boxes: number[][] = []
  const boxOf = new Array<number>(nodes.length).fill(-1)
  const put = (box: readonly number[]) => {
    for (const node of box) boxOf[node] = boxes.length
    boxes.push([...box])
  }
  for (const path of paths) {
    let chain: number[] = []
    for (const [at, node] of path.nodes.entries()) {
      if (isAlone[node]) chain.push(node)
      if (isAlone[node] && at < path.nodes.length - 1) continue
      const isFolded = chain.length >= shortestChain && !chain.some((one) => opened.has(one))
      for (const box of isFolded ? [chain] : chain.map((one) => [one])) put(box)
      chain = []
      if (boxOf[node] === -1) put([node])
    }
  }
  const links = new Map<string, { readonly from: number; readonly to: number; readonly edges: number[] }>()
  for (const [at, edge] of edges.entries()) {
    const [from, to] = [boxOf[edge.from]!, boxOf[edge.to]!]
    if (from === to && boxes[from]!.length > 1) continue
    const known = links.get(`${from} ${to}`)
    if (known) known.edges.push(at)
    else links.set(`${from} ${to}`, { from, to, edges: [at] })
  }
  return { boxes, boxOf, links: [...links.values()] }
}
