import { describe, expect, it } from "vitest"
import { Placement } from "../../src/engine/native/placement.ts"

const prompt = (...tokens: number[]) => ({ prompt: Int32Array.from(tokens), maxTokens: 10 })

describe("the placement of requests", () => {
  it("sends a new prompt to the replica with the fewest tokens in flight", () => {
    const placement = new Placement(3)
    const placed = [1, 2, 3].map((token) => placement.place(prompt(token)))
    expect(placed.map(({ replica }) => replica)).toEqual([0, 1, 2])
    placed[1]!.done()
    expect(placement.place(prompt(4)).replica).toBe(1)
  })

  it("sends a request that begins with an earlier prompt to the same replica", () => {
    const placement = new Placement(2)
    expect(placement.place(prompt(1, 2)).replica).toBe(0)
    expect(placement.place(prompt(1, 3)).replica).toBe(1) // a common beginning alone is not enough
    expect(placement.place(prompt(1, 2)).replica).toBe(0)
    expect(placement.place(prompt(1, 2, 9)).replica).toBe(0)
    expect(placement.place(prompt(1, 2, 9, 9)).replica).toBe(0)
    expect(placement.place(prompt(1, 3, 9)).replica).toBe(1)
  })

  it("spreads requests with the same prompt once one replica has far more than another", () => {
    const placement = new Placement(2)
    const replicas = Array.from({ length: 80 }, () => placement.place(prompt(1, 2)).replica)
    expect(replicas.slice(0, 33)).toEqual(Array(33).fill(0))
    expect(replicas.filter((replica) => replica === 1).length).toBeGreaterThanOrEqual(20)
  })

  it("takes an empty prompt", () => {
    expect(new Placement(2).place(prompt()).replica).toBe(0)
  })
})
