import { describe, expect, it } from "vitest"
import { gigpo } from "../../src/credit/gigpo.ts"
import { gigpoPresets } from "../../src/credit/presets.ts"
import { rlvmr } from "../../src/credit/rlvmr.ts"
import { expectClose } from "./close.ts"
import { advantagesOf, deviation, equalEpisodes, expectOrderless, mean, worlds } from "./worlds.ts"

const options = { reward: "gain", tag: "belief" } as const

describe("rlvmr", () => {
  it.each([
    { omega: 1, normalization: "sample" },
    { omega: 0.5, normalization: "none" },
  ] as const)(
    "compares rewards of reasoning within tags, next to verl-agent's episode advantage: %o",
    async (choice) => {
      const { omega, normalization } = choice
      for (const steps of worlds) {
        const outcome = await advantagesOf(gigpo({ ...gigpoPresets.verlAgent, normalization, omega: 0 }), steps)
        const expected = steps.map((step, row) => {
          const tag = step.metrics.belief
          const peers = steps.filter((other) => other.task === step.task && other.metrics.belief === tag)
          const rewards = peers.map(({ metrics }) => metrics.gain ?? 0)
          const own = step.metrics.gain ?? 0
          const width = normalization === "none" ? 1 : (peers.length === 1 ? 1 : deviation(rewards)) + 1e-6
          const isEqual = rewards.every((one) => one === own) && rewards.length > 1
          const compared = tag === undefined || isEqual ? 0 : (own - (rewards.length === 1 ? 0 : mean(rewards))) / width
          return outcome[row]! + omega * compared
        })
        expectClose(await advantagesOf(rlvmr({ ...options, ...choice }), steps), expected, 1e-9)
      }
    },
  )

  it("does not depend on the order of episodes", () => expectOrderless(() => rlvmr(options)))

  it("gives exactly 0 for equal rewards", async () => {
    for (const reward of [0, 0.1, -1e6])
      for (const normalization of ["sample", "none"] as const) {
        const found = await advantagesOf(rlvmr({ ...options, normalization }), equalEpisodes(reward))
        expect(found.every((one) => one === 0)).toBe(true)
      }
  })

  it("rejects steps whose reasoning was not scored", async () => {
    await expect(advantagesOf(rlvmr(), worlds[0]!)).rejects.toThrow(/rlvmr: no step has the metric "reasoning-tag"/)
  })
})
