import { describe, expect, it } from "vitest"
import { toBatch } from "../../src/credit/batch.ts"
import { hgpo } from "../../src/credit/hgpo.ts"
import { historyLevels } from "../../src/credit/history-levels.ts"
import { gigpoTree, treeLevels } from "../../src/credit/tree.ts"
import { expectClose } from "./close.ts"
import {
  advantagesOf,
  amongPeers,
  context,
  creditOf,
  deviation,
  equalEpisodes,
  expectOrderless,
  fromOn,
  keyOf,
  mean,
  outcomeOf,
  sum,
  type Told,
  worlds,
} from "./worlds.ts"

const gamma = 0.95

/** The last k states of a step, the present one among them; undefined where there were not so many. */
function history(steps: readonly Told[], step: Told, k: number): string | undefined {
  const path = steps.filter((other) => keyOf(other) === keyOf(step) && other.turn <= step.turn)
  const states = path.sort((a, b) => a.turn - b.turn).map(({ anchor }) => anchor)
  return states.length < k ? undefined : JSON.stringify([step.task, ...states.slice(-k)])
}

const discounted = (steps: readonly Told[]) => (step: Told) =>
  sum(fromOn(steps, step).map(({ reward }, later) => gamma ** later * reward))

interface Convention {
  readonly history: number
  readonly weighting: "k" | "k+1"
  readonly alpha: number
  readonly normalization: "population" | "none"
  readonly baseGroup: boolean
}

function definition(steps: readonly Told[], convention: Convention): number[] {
  const { weighting, alpha, normalization } = convention
  const levels = Array.from({ length: convention.history + 1 }, (_, level) =>
    amongPeers(
      steps,
      (step) => history(steps, step, level + 1),
      discounted(steps),
      (value, peers) =>
        (value - mean(peers)) / (normalization === "population" ? deviation(peers, "population") + 1e-6 : 1),
    ),
  )
  return steps.map((step, row) => {
    const items = levels.map((level, at) => ({ k: at + 1, a: level[row]! }))
    if (convention.baseGroup)
      items.push({ k: 0, a: outcomeOf(steps, step, normalization === "population" ? "sample" : "none") })
    const met = items.filter(({ a }) => a !== 0)
    const weights = met.map(({ k }) => (weighting === "k" ? k : k + 1) ** alpha)
    return met.length === 0 ? 0 : sum(met.map(({ a }, item) => weights[item]! * a)) / (sum(weights) + 1e-6)
  })
}

describe("hgpo", () => {
  const plain = { history: 2, weighting: "k+1", alpha: 1, normalization: "population", baseGroup: false } as const
  it.each<Convention>([
    plain,
    { ...plain, history: 0, alpha: 0 },
    { ...plain, history: 4, normalization: "none" },
    { ...plain, weighting: "k", alpha: 2 },
    { ...plain, baseGroup: true },
    { ...plain, weighting: "k", normalization: "none", baseGroup: true },
  ])("gives what its definition says, with %j", async (convention) => {
    for (const steps of worlds) {
      const expected = definition(steps, convention)
      expect(expected.some((value) => Math.abs(value) > 0.1)).toBe(true)
      expectClose(await advantagesOf(hgpo(convention), steps), expected, 1e-9)
    }
  })

  it("does not depend on the order of episodes", () => expectOrderless(() => hgpo({ baseGroup: true })))

  it("gives exactly 0 for equal rewards", async () => {
    for (const reward of [10, 0.1, -3e7])
      for (const baseGroup of [false, true])
        expect((await advantagesOf(hgpo({ baseGroup }), equalEpisodes(reward))).every((value) => value === 0)).toBe(
          true,
        )
  })

  it("reports groups of single states, and does not use their episode advantages", async () => {
    const steps = worlds[0]!
    const { details, metrics } = await creditOf(hgpo(), steps)
    expect(details!.stepGroups).toEqual(toBatch(steps).anchorGroups)
    expect(details!.episodeAdvantages).toEqual(new Float64Array(steps.length))
    expect(metrics!["step-group/count"]).toBeGreaterThan(4)
  })

  it.each([
    [{ history: -1 }, /hgpo: history must be/],
    [{ weighting: "k+2" }, /weighting must be "k\+1" or "k"/],
    [{ alpha: -1 }, /alpha must be/],
    [{ omega: 1 }, /omega is not an option/],
    [{ normalization: "leaveOneOut" }, /normalization must be/],
  ])("rejects %j", (options, message) => {
    expect(() => hgpo(options as object)).toThrow(message)
    expect(() => historyLevels(0.5)).toThrow(/historyLevels: history must be an integer/)
  })
})

describe("treeLevels", () => {
  it("group steps that reached a state by the same earlier states", () => {
    for (const steps of worlds) {
      const [level] = treeLevels(toBatch(steps), context())
      const keys = steps.map((step) => history(steps, step, step.turn + 1)!)
      for (const [row, key] of keys.entries())
        for (const [other, its] of keys.entries()) expect(level!.ids[row] === level!.ids[other]).toBe(key === its)
    }
  })

  it("equal the levels of gigpoTree", async () => {
    for (const steps of worlds.slice(0, 5)) {
      const peers = amongPeers(
        steps,
        (step) => history(steps, step, step.turn + 1),
        discounted(steps),
        (value, all) => value - mean(all),
      )
      const expected = steps.map((step, row) => outcomeOf(steps, step, "none") + 2 * peers[row]!)
      expectClose(await advantagesOf(gigpoTree({ normalization: "none", omega: 2 }), steps), expected, 1e-9)
    }
    await expectOrderless(() => gigpoTree())
  })
})
