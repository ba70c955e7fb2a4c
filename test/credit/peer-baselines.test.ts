import { describe, expect, it } from "vitest"
import { asymRe } from "../../src/credit/asym-re.ts"
import { maxRl } from "../../src/credit/max-rl.ts"
import { opmd } from "../../src/credit/opmd.ts"
import { rae } from "../../src/credit/rae.ts"
import { expectClose } from "./close.ts"
import {
  advantagesOf,
  equalEpisodes,
  expectOrderless,
  keyOf,
  mean,
  returnOf,
  sum,
  type Told,
  worlds,
} from "./worlds.ts"

/** What a return is among those of its task, each episode once; the return of a single one, or 0. */
function compared(steps: readonly Told[], compare: (value: number, all: readonly number[]) => number): number[] {
  return steps.map((step) => {
    const firsts = steps.filter((other) => other.task === step.task && other.turn === 0)
    const returns = firsts.map((other) => returnOf(steps, other))
    return returns.length < 2 ? 0 : compare(returnOf(steps, step), returns)
  })
}

describe.each([maxRl, opmd, asymRe])("the estimator $name", (make) => {
  it("does not depend on the order of episodes", () => expectOrderless(make))
})

describe("maxRl", () => {
  const definition = (value: number, all: readonly number[]) =>
    mean(all) > 1e-12 ? (value - mean(all)) / mean(all) : 0

  it("divides the distance from the mean return by the mean, if that is positive", async () => {
    let [scaled, none] = [0, 0]
    for (const steps of worlds) {
      const expected = compared(steps, definition)
      expectClose(await advantagesOf(maxRl(), steps), expected, 1e-9)
      for (const value of expected) value === 0 ? none++ : scaled++
    }
    expect(Math.min(scaled, none)).toBeGreaterThan(20)
  })

  it("gives a single success of n the advantage n - 1", async () => {
    const steps = [1, 0, 0, 0].map((reward, episode) => ({ task: 0, episode, anchor: "", reward }))
    expect([...(await advantagesOf(maxRl(), steps))]).toEqual([3, -1, -1, -1])
    expectClose(await advantagesOf(maxRl({ epsilon: 0.25 }), steps), [1.5, -0.5, -0.5, -0.5])
    expect([...(await advantagesOf(maxRl({ singletonEpisode: "raw" }), steps.slice(0, 1)))]).toEqual([1])
  })

  it("gives exactly 0 for equal rewards", async () => {
    for (const reward of [0, 0.1, 1 / 3, -2])
      expect((await advantagesOf(maxRl(), equalEpisodes(reward))).every((one) => one === 0)).toBe(true)
  })
})

describe("asymRe", () => {
  it("shifts the mean of the task, also for equal returns", async () => {
    for (const steps of worlds)
      expectClose(
        await advantagesOf(asymRe({ baselineShift: -0.3 }), steps),
        compared(steps, (value, all) => value - (mean(all) - 0.3)),
        1e-9,
      )
    expectClose(await advantagesOf(asymRe(), equalEpisodes(1 / 3)), new Array(15).fill(0.1))
    expect([...(await advantagesOf(asymRe({ baselineShift: 0 }), equalEpisodes(1 / 3)))]).toEqual(new Array(15).fill(0))
  })
})

describe("opmd", () => {
  it.each(["mean", "log-mean-exp"] as const)("subtracts the %s of the task's returns", async (baseline) => {
    const tau = 0.7
    const of = (all: readonly number[]) =>
      baseline === "mean" ? mean(all) : tau * Math.log(mean(all.map((one) => Math.exp(one / tau))))
    for (const steps of worlds)
      expectClose(
        await advantagesOf(opmd({ baseline, tau }), steps),
        compared(steps, (value, all) => (Math.max(...all) - Math.min(...all) < 1e-12 ? 0 : value - of(all))),
        1e-9,
      )
    for (const reward of [0, 0.1, 1e6 / 3])
      expect((await advantagesOf(opmd({ baseline, tau }), equalEpisodes(reward))).every((one) => one === 0)).toBe(true)
  })

  it("is finite for returns that are large against the temperature", async () => {
    const steps = [1e6, 0].map((reward, episode) => ({ task: 0, episode, anchor: "", reward }))
    const advantages = await advantagesOf(opmd({ baseline: "log-mean-exp", tau: 0.01 }), steps)
    expectClose(advantages, [0.01 * Math.log(2), 0.01 * Math.log(2) - 1e6], 1e-6)
  })
})

describe("rae", () => {
  it("compares what an agent earns with the moving average of what it earned", async () => {
    const estimator = rae({ decay: 0.9, kind: "kind" })
    const baselines = new Map<string, number>()
    for (const steps of worlds) {
      const expected = new Map<string, number>()
      const own = (step: Told) => `${keyOf(step)} ${step.agent}`
      for (const step of steps) {
        if (expected.has(own(step))) continue
        const earned = sum(steps.filter((other) => own(other) === own(step)).map(({ reward }) => reward))
        const role = `${step.metrics.kind} ${step.agent}`
        const baseline = baselines.get(role) ?? 0
        expected.set(own(step), earned - baseline)
        baselines.set(role, 0.9 * baseline + 0.1 * earned)
      }
      expectClose(
        await advantagesOf(estimator, steps),
        steps.map((step) => expected.get(own(step))!),
        1e-9,
      )
    }
    expect(baselines.size).toBe(4)
  })

  it("knows agents by their names in every batch", async () => {
    const turn = (agent: string, reward: number) => ({ task: 0, episode: 0, anchor: "", agent, reward })
    const estimator = rae({ decay: 0.5 })
    expect([...(await advantagesOf(estimator, [turn("white", 1), turn("black", -1)]))]).toEqual([1, -1])
    expect([...(await advantagesOf(estimator, [turn("black", -1), turn("white", 1)]))]).toEqual([-0.5, 0.5])
    const resumed = rae({ decay: 0.5 })
    resumed.restore!(structuredClone(estimator.state!()))
    expect([...(await advantagesOf(resumed, [turn("white", 1)]))]).toEqual([0.25])
  })

  it("gives exactly 0 once rewards are as expected", async () => {
    const estimator = rae({ decay: 0 })
    await advantagesOf(estimator, equalEpisodes(1 / 3))
    expect((await advantagesOf(estimator, equalEpisodes(1 / 3))).every((one) => one === 0)).toBe(true)
  })
})
