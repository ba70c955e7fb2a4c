import { Graph, layout } from "@dagrejs/dagre"
import type { Layout, LayoutRequest } from "./layout.ts"

/** Layout by dagre in ranks from the first state to the ends, with space for each label. */
export function ranked({ boxes, links, isTall }: LayoutRequest): Layout {
  const graph = new Graph({ multigraph: true })
  graph.setGraph({ rankdir: isTall ? "TB" : "LR", nodesep: 22, ranksep: 22, edgesep: 14, marginx: 30, marginy: 24 })
  for (const [box, { width, height }] of boxes.entries()) graph.setNode(String(box), { width, height })
  for (const [link, { from, to, width, height, weight }] of links.entries())
    graph.setEdge(String(from), String(to), { width, height, weight, labelpos: "c" }, String(link))
  layout(graph)
  const { width = 0, height = 0 } = graph.graph()
  return {
    width,
    height,
    boxes: boxes.map((_, box) => {
      const { x, y } = graph.node(String(box))
      return { x, y }
    }),
    links: links.map(({ from, to }, link) => {
      const { points, x, y } = graph.edge(String(from), String(to), String(link))
      return { points: points ?? [], ...(x !== undefined && y !== undefined && { label: { x, y } }) }
    }),
  }
}
