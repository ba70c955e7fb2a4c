import { expect, it } from "vitest"
import { stateGraph } from "../../../src/view/data/graph.ts"
import { stateScale, toneOf } from "../../../src/view/page/graph/scale.ts"
import { groupOf, madeEpisode, madeStep } from "../data/made-group.ts"

/** Tones of the states of episodes that earned 1, 2 and 4 from them on. */
function tones(...success: readonly number[]): number[] {
  const graph = stateGraph(
    groupOf(
      ...[1, 2, 4].map((discountedReturn, at) =>
        madeEpisode(at, [madeStep(at, "go", { discountedReturn })], { metrics: { success: success[at]! } }),
      ),
    ),
  )
  const scale = stateScale(graph, "return")
  return graph.nodes.flatMap((node) => (node.kind === "state" ? [toneOf(node.mean, scale)] : []))
}

it("colours returns to both sides of their mean, and to one side where all succeeded or none did", () => {
  const mixed = tones(0, 1, 1)
  expect([mixed[0], Math.sign(mixed[1]!), mixed[2]]).toEqual([-1, -1, 1])
  expect(tones(1, 1, 1)).toEqual([0, 1 / 3, 1])
  expect(tones(0, 0, 0)).toEqual([-1, -2 / 3, 0])
})
