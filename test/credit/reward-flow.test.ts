import { describe, expect, it } from "vitest"
import { toBatch } from "../../src/credit/batch.ts"
import { rewardFlow } from "../../src/credit/reward-flow.ts"
import { flowValues, stateGraph } from "../../src/credit/state-graph.ts"
import { expectClose } from "./close.ts"
import {
  advantagesOf,
  amongPeers,
  equalEpisodes,
  expectOrderless,
  mean,
  outcomeOf,
  type Told,
  worlds,
} from "./worlds.ts"

/** V of each state by walking: the best of r(end) γ^steps over all walks, until nothing gets better. */
function values(steps: readonly Told[], gamma: number): Map<string, number> {
  const moves = steps.filter(({ record, anchor, nextAnchor }) => record!.action !== "look" && anchor !== nextAnchor)
  const found = new Map<string, number>()
  const arrive = (place: string, reward: number) => found.set(place, Math.max(found.get(place) ?? -1e9, reward))
  for (const { task, turn, anchor } of steps) if (turn === 0) arrive(`${task} ${anchor}`, 0)
  for (const { task, nextAnchor, reward } of moves) arrive(`${task} ${nextAnchor}`, reward)
  for (const { task, anchor } of steps) if (!found.has(`${task} ${anchor}`)) found.set(`${task} ${anchor}`, 0)
  for (let round = 0; round < 2000; round++)
    for (const { task, anchor, nextAnchor } of moves) {
      const [from, to] = [`${task} ${anchor}`, `${task} ${nextAnchor}`]
      found.set(from, Math.max(found.get(from)!, gamma * found.get(to)!))
    }
  return found
}

describe("rewardFlow", () => {
  it.each([0.9, 0.5, 1])("matches its definition, with gamma %d", async (gamma) => {
    for (const steps of worlds) {
      const v = values(steps, gamma)
      const signal = ({ task, anchor, nextAnchor, reward, record }: Told) =>
        record!.action === "look" ? reward : v.get(`${task} ${nextAnchor}`)! - v.get(`${task} ${anchor}`)!
      const peers = amongPeers(
        steps,
        ({ task, anchor }) => `${task} ${anchor}`,
        signal,
        (value, all) => value - mean(all),
      )
      const expected = steps.map((step, row) => outcomeOf(steps, step, "none") + peers[row]!)
      expect(peers.some((value) => Math.abs(value) > 0.1)).toBe(true)
      expectClose(await advantagesOf(rewardFlow({ gamma }), steps), expected, 1e-9)
    }
  })

  it("does not depend on the order of episodes, except if the first arrival counts", async () => {
    await expectOrderless(() => rewardFlow())
    const episode = (id: number, reward: number) => ({ task: 0, episode: id, anchor: "a", nextAnchor: "b", reward })
    const [poor, rich] = [episode(0, 0), episode(1, 1)]
    const worth = (steps: (typeof poor)[], arrivals: "first" | "largest") => {
      const graph = stateGraph(toBatch(steps), { arrivals, idleActions: [] })
      return [...flowValues(graph, 0.5)]
    }
    expect(worth([poor, rich], "first")).toEqual([0, 0])
    expect(worth([rich, poor], "first")).toEqual([0.5, 1])
    for (const steps of [
      [poor, rich],
      [rich, poor],
    ])
      expect(worth(steps, "largest")).toEqual([0.5, 1])
  })

  it("propagates losses around a cycle until they vanish", () => {
    const step = (anchor: string, nextAnchor: string, id: number) => ({
      task: 0,
      episode: id,
      anchor,
      nextAnchor,
      reward: -1,
    })
    const circle = [step("start", "a", 0), step("a", "b", 0), step("b", "a", 0)]
    const found = flowValues(stateGraph(toBatch(circle), { arrivals: "largest", idleActions: [] }), 0.9)
    expectClose(found, [0, 0, 0], 1e-12)
  })

  it("gives exactly 0 for equal rewards", async () => {
    for (const reward of [10, 0.1, -3e7])
      expect((await advantagesOf(rewardFlow(), equalEpisodes(reward))).every((value) => value === 0)).toBe(true)
  })

  it("rejects steps without next states, and invalid options", async () => {
    const bare = [{ task: 0, episode: 0, anchor: "a", reward: 1 }]
    await expect(advantagesOf(rewardFlow(), bare)).rejects.toThrow(/no step has a nextAnchor; give each/)
    expect(() => rewardFlow({ arrivals: "last" as "first" })).toThrow(/arrivals must be "largest" or "first"/)
    expect(() => rewardFlow({ gamma: 0 })).toThrow(/reward-flow: gamma must be/)
    expect(() => rewardFlow({ idleActions: [""] })).toThrow(/idleActions must be a list/)
  })
})
