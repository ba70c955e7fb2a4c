import { describe, expect, it } from "vitest"
import { Random } from "../../../src/util/random.ts"
import { type EndNode, endings, type StateNode, stateGraph } from "../../../src/view/data/graph.ts"
import { groupOf, madeEpisode, madeStep, randomGroup } from "./made-group.ts"

const right = { outcome: "terminated", metrics: { success: 1 }, last: { text: "the goal", anchor: "goal" } } as const
const wrong = { outcome: "truncated", metrics: { success: 0 }, last: { text: "the goal", anchor: "goal" } } as const

describe("the graph of a task's states", () => {
  const graph = stateGraph(
    groupOf(
      madeEpisode(
        0,
        [
          madeStep(7, "wait", { discountedReturn: 2, stepAdvantage: -1, advantage: 0.5 }),
          madeStep(7, "go", { discountedReturn: 4, stepAdvantage: 1, advantage: [1, 2] }),
        ],
        { ...right, return: 4 },
      ),
      madeEpisode(1, [madeStep(7, "go", { discountedReturn: 3, stepAdvantage: 0 }), madeStep(9, "go")], {
        ...right,
        return: 2,
      }),
      madeEpisode(2, [madeStep(7, "go", { discountedReturn: 3 })], wrong),
    ),
  )
  const [shared, alone, won, lost] = graph.nodes as [StateNode, StateNode, EndNode, EndNode]

  it("has a node for each step group, and one for each way to end", () => {
    expect(graph.nodes).toHaveLength(4)
    expect(shared).toMatchObject({
      kind: "state",
      stepGroup: 7,
      observation: "state 7",
      episodes: 3,
      starts: 3,
      mean: 3,
    })
    expect(shared.places).toEqual([
      { member: 0, step: 0 },
      { member: 0, step: 1 },
      { member: 1, step: 0 },
      { member: 2, step: 0 },
    ])
    expect(shared.spread).toBeCloseTo(Math.sqrt(0.5))
    expect(alone).toMatchObject({ stepGroup: 9, episodes: 1, starts: 0, mean: undefined, decision: undefined })
    expect(won).toEqual({ kind: "end", ending: "success", observation: "the goal", members: [0, 1], mean: 3 })
    expect(lost).toMatchObject({ ending: "failure", members: [2] })
  })

  it("has an edge for each action between two nodes, with what it was worth", () => {
    const found = graph.edges.map(({ from, to, action, places, stepAdvantage }) => [
      from,
      to,
      action,
      places.length,
      stepAdvantage,
    ])
    expect(found).toEqual([
      [0, 0, "wait", 1, -1],
      [0, 2, "go", 1, 1],
      [0, 1, "go", 1, 0],
      [1, 2, "go", 1, undefined],
      [0, 3, "go", 1, undefined],
    ])
    expect(graph.edges[1]!.advantage).toBe(1.5)
    expect(graph.edges[4]!.endings).toEqual({ success: 0, failure: 1, ended: 0, failed: 0 })
    expect(shared.decision).toBe(2)
  })

  it("has a path for each episode", () => {
    expect(graph.paths.map(({ nodes, edges, ending }) => ({ nodes, edges, ending }))).toEqual([
      { nodes: [0, 0, 2], edges: [0, 1], ending: "success" },
      { nodes: [0, 1, 2], edges: [2, 3], ending: "success" },
      { nodes: [0, 3], edges: [4], ending: "failure" },
    ])
  })

  it("counts undiscounted rewards to go where the estimator compares no returns", () => {
    const steps = [madeStep(1, "a", { reward: 1 }), madeStep(1, "a", { reward: 5 })]
    const { nodes, discounted } = stateGraph(groupOf(madeEpisode(0, steps)))
    expect(discounted).toBe(false)
    expect(nodes[0]).toMatchObject({ mean: 5.5, spread: 0.5 })
    expect(nodes[1]).toMatchObject({ ending: "ended", mean: 6 })
  })

  it("keeps the conversations of an episode apart", () => {
    const steps = ["a", "b", "a"].map((conversation, at) => madeStep(at, "say", { conversation }))
    const { paths, nodes } = stateGraph(
      groupOf(madeEpisode(0, steps), madeEpisode(1, steps.slice(1, 2), { return: 3 })),
    )
    expect(paths.map(({ conversation, steps }) => [conversation, steps])).toEqual([
      ["a", [0, 2]],
      ["b", [1]],
      ["b", [0]],
    ])
    expect(nodes.at(-1)).toMatchObject({ members: [0, 1], mean: 1.5 })
  })
})

it("holds every step of every episode exactly once, as a visit and as an action", () => {
  for (let seed = 0; seed < 200; seed++) {
    const group = randomGroup(new Random(seed))
    const graph = stateGraph(group)
    const all = group.episodes.flatMap(({ member, steps }) => steps.map((_, step) => `${member} ${step}`)).sort()
    const named = (places: readonly { member: number; step: number }[]) => places.map((at) => `${at.member} ${at.step}`)
    expect(graph.nodes.flatMap((node) => (node.kind === "state" ? named(node.places) : [])).sort()).toEqual(all)
    expect(graph.edges.flatMap(({ places }) => named(places)).sort()).toEqual(all)
    for (const node of graph.nodes) {
      if (node.kind !== "state") continue
      for (const { member, step } of node.places)
        expect(group.episodes[member]!.steps[step]!.stepGroup).toBe(node.stepGroup)
    }
    for (const { member, steps, nodes, edges } of graph.paths) {
      expect([steps.length, nodes.length]).toEqual([edges.length, edges.length + 1])
      for (const [at, edge] of edges.entries()) {
        const { from, to, action, places } = graph.edges[edge]!
        expect([from, to, action]).toEqual([
          nodes[at],
          nodes[at + 1],
          group.episodes[member]!.steps[steps[at]!]!.action,
        ])
        expect(places).toContainEqual({ member, step: steps[at] })
      }
      expect(graph.nodes[nodes.at(-1)!]!.kind).toBe("end")
    }
    for (const { endings: counts, places } of graph.edges)
      expect(endings.reduce((sum, ending) => sum + counts[ending], 0)).toBe(places.length)
    const begun = graph.nodes.reduce((sum, node) => sum + (node.kind === "state" ? node.starts : 0), 0)
    expect(begun).toBe(graph.paths.length)
  }
})
