import { describe, expect, it } from "vitest"
import { estimate } from "../../src/credit/as-estimator.ts"
import { toBatch } from "../../src/credit/batch.ts"
import { gigpo, gigpoAdvantages } from "../../src/credit/gigpo.ts"
import { grpoAdvantages } from "../../src/credit/grpo.ts"
import { gigpoFields } from "../../src/credit/options.ts"
import { gigpoPresets } from "../../src/credit/presets.ts"
import { withDefaults } from "../../src/options/defaults.ts"
import { readOptions } from "../../src/options/read.ts"
import { Random } from "../../src/util/random.ts"
import { expectClose } from "./close.ts"
import { episode } from "./steps.ts"

// Two tasks that look alike in the state "s".
const steps = [
  ...episode("t", "a", [
    ["s", 0],
    ["u", 4, false],
  ]),
  ...episode("t", "b", [["s", 1]]),
  ...episode("v", "a", [
    ["s", 0],
    ["w", 0],
    ["s", 3],
  ]),
]

describe("presets", () => {
  it("are valid options of gigpo, grpo and their pure functions", () => {
    for (const preset of Object.values(gigpoPresets)) {
      expect(gigpo(preset).name).toBe("gigpo")
      expect(grpoAdvantages(steps, preset).advantages).toHaveLength(steps.length)
    }
  })

  it("of the paper equal the defaults", () => {
    expect(gigpoPresets.paper).toEqual(readOptions("gigpo", {}, gigpoFields))
    expect(gigpoAdvantages(steps, gigpoPresets.paper)).toEqual(gigpoAdvantages(steps))
  })

  it("can become the defaults of an option table", () => {
    for (const preset of Object.values(gigpoPresets)) {
      const table = withDefaults(gigpoFields, preset)
      expect(readOptions("gigpo", {}, table)).toEqual(readOptions("gigpo", preset, gigpoFields))
      expect(readOptions("gigpo", { omega: 3 }, table).omega).toBe(3)
    }
    expect(readOptions("gigpo", {}, gigpoFields).episodeStatistics).toBe("episodes")
  })

  it("of Trinity-RFT compare equal states of the whole batch, without discount and normalization", () => {
    const { episodeAdvantages, stepAdvantages, stepGroups } = gigpoAdvantages(steps, gigpoPresets.trinity)
    // Returns 4, 1 of one task; the other has one episode, whose return stays. Of "s" the returns are 4, 1, 3, 3: mean 11/4.
    expectClose(episodeAdvantages, [1.5, 1.5, -1.5, 3, 3, 3])
    expect([...stepGroups]).toEqual([0, 1, 0, 0, 2, 0])
    expectClose(stepAdvantages, [1.25, 0, -1.75, 0.25, 0, 0.25])
  })

  it("of ROLL do the same, weight long episodes more, and whiten over tokens", async () => {
    const lengths = [3, 1, 2, 5, 1, 1]
    const batch = toBatch(steps.map((step, row) => ({ ...step, length: lengths[row] })))
    const { advantages, details } = await estimate(gigpo(gigpoPresets.roll), batch, {
      progress: { iteration: 0, iterations: 1 },
      random: new Random(0),
    })
    // Rows' returns 4, 4, 1: mean 3. The other task's rows are all equal. Of "s" 0.95 · 4, 1, 0.95² · 3, 3.
    expectClose(details!.episodeAdvantages as Float64Array, [1, 1, -2, 0, 0, 0])
    const mean = (3.8 + 1 + 2.7075 + 3) / 4
    const stepwise = [3.8 - mean, 0, 1 - mean, 2.7075 - mean, 0, 3 - mean]
    expectClose(details!.stepAdvantages as Float64Array, stepwise)
    const joint = [1, 1, -2, 0, 0, 0].map((value, row) => value + stepwise[row]!)
    const tokens = joint.flatMap((value, row) => Array<number>(lengths[row]!).fill(value))
    const centre = tokens.reduce((sum, value) => sum + value, 0) / tokens.length
    const variance = tokens.reduce((sum, value) => sum + (value - centre) ** 2, 0) / (tokens.length - 1)
    expectClose(
      advantages,
      joint.map((value) => (value - centre) / Math.sqrt(variance + 1e-8)),
    )
  })
})

describe("stepScope", () => {
  it("separates tasks unless the whole batch is compared, also for similar states", () => {
    const groups = (options: object) => [...gigpoAdvantages(steps, options).stepGroups]
    expect(groups({})).toEqual([0, 1, 0, 2, 3, 2])
    expect(groups({ stepScope: "batch" })).toEqual([0, 1, 0, 0, 2, 0])
    expect(groups({ stepScope: "batch", similarity: 1 })).toEqual([0, 1, 0, 0, 2, 0])
    expect(groups({ similarity: 1 })).toEqual([0, 1, 0, 2, 3, 2])
  })

  it("is replaced by custom levels", () => {
    expect(() => gigpo({ stepScope: "batch", levels: () => [] })).toThrow(/levels, which replaces stepScope/)
    expect(() => gigpo({ stepScope: "group" as "task" })).toThrow(/stepScope must be "task" or "batch"/)
  })
})

it("epsilon is added to the deviation at both levels", () => {
  const two = [...episode("t", "a", [["s", 0]]), ...episode("t", "b", [["s", 2]])]
  // Standard deviation √2 at both.
  const half = 1 / (Math.SQRT2 + 0.5)
  expectClose(gigpoAdvantages(two, { epsilon: 0.5 }).episodeAdvantages, [-half, half])
  expectClose(gigpoAdvantages(two, { epsilon: 0.5 }).stepAdvantages, [-half, half])
})
