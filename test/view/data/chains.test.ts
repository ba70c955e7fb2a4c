import { describe, expect, it } from "vitest"
import { Random } from "../../../src/util/random.ts"
import { foldChains } from "../../../src/view/data/chains.ts"
import { stateGraph } from "../../../src/view/data/graph.ts"
import { groupOf, madeEpisode, madeStep, randomGroup } from "./made-group.ts"

describe("folding a graph", () => {
  // 0 and 5 are shared; 1 2 3 lie between them in one episode, 4 in the other.
  const walk = (states: readonly number[]) => states.map((state) => madeStep(state, "go"))
  const graph = stateGraph(groupOf(madeEpisode(0, walk([0, 1, 2, 3, 5])), madeEpisode(1, walk([0, 4, 5]))))

  it("takes states that one episode alone came through in a row as one", () => {
    const { boxes, links } = foldChains(graph)
    expect(boxes).toEqual([[0], [1, 2, 3], [4], [6], [5]])
    expect(links.map(({ from, to }) => [from, to])).toEqual([
      [0, 1],
      [1, 2],
      [2, 3],
      [0, 4],
      [4, 2],
    ])
  })

  it("leaves a chain that was opened as it is", () => {
    expect(foldChains(graph, new Set([2])).boxes).toEqual(graph.nodes.map((_, node) => [[0, 1, 2, 3, 4, 6, 5][node]]))
  })
})

it("draws every node once, and every edge once that lies in no chain", () => {
  for (let seed = 0; seed < 200; seed++) {
    const graph = stateGraph(randomGroup(new Random(seed)))
    const { boxes, boxOf, links } = foldChains(graph)
    expect(boxes.flat().sort((a, b) => a - b)).toEqual(graph.nodes.map((_, node) => node))
    for (const [box, nodes] of boxes.entries()) for (const node of nodes) expect(boxOf[node]).toBe(box)
    const within = boxes.reduce((sum, nodes) => sum + nodes.length - 1, 0)
    expect(links.flatMap(({ edges }) => edges)).toHaveLength(graph.edges.length - within)
    for (const { from, to, edges } of links)
      for (const edge of edges)
        expect([boxOf[graph.edges[edge]!.from], boxOf[graph.edges[edge]!.to]]).toEqual([from, to])
  }
})
