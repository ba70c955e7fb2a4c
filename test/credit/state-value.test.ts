import { describe, expect, it } from "vitest"
import { type G2poOptions, g2po } from "../../src/credit/g2po.ts"
import { stateValue } from "../../src/credit/state-value.ts"
import { expectClose } from "./close.ts"
import {
  advantagesOf,
  amongPeers,
  creditOf,
  deviation,
  equalEpisodes,
  expectOrderless,
  fromOn,
  mean,
  returnOf,
  sum,
  type Told,
  worlds,
} from "./worlds.ts"

const discounted = (steps: readonly Told[], step: Told, gamma: number) =>
  sum(fromOn(steps, step).map(({ reward }, later) => gamma ** later * reward))

/** Mean discounted return of the visits of a step's state in its task. */
function values(steps: readonly Told[], gamma: number): (step: Told) => number {
  const known = new Map<string, number>()
  return ({ task, anchor }) => {
    const key = `${task} ${anchor}`
    const visits = () => steps.filter((other) => other.task === task && other.anchor === anchor)
    const value = known.get(key) ?? mean(visits().map((visit) => discounted(steps, visit, gamma)))
    known.set(key, value)
    return value
  }
}

describe("stateValue", () => {
  const ofTask = ({ task }: Told) => String(task)

  it.each([
    { gamma: 0.9, lambda: 0.7, normalization: "sample" },
    { gamma: 0.95, lambda: 0, normalization: "population" },
    { gamma: 1, lambda: 1, normalization: "none" },
  ] as const)("is GAE on mean returns of states: %o", async (options) => {
    const { gamma, lambda, normalization } = options
    for (const steps of worlds) {
      const valueOfState = values(steps, gamma)
      const trace = (step: Told) =>
        sum(
          fromOn(steps, step).map((now, later, all) => {
            const next = all[later + 1]
            const delta = now.reward + (next ? gamma * valueOfState(next) : 0) - valueOfState(now)
            return (gamma * lambda) ** later * delta
          }),
        )
      const expected = amongPeers(steps, ofTask, trace, (value, peers) => {
        const scale = normalization === "none" ? 1 : deviation(peers, normalization) + 1e-6
        return (value - mean(peers)) / scale
      })
      const { advantages, details } = await creditOf(stateValue(options), steps)
      expectClose(advantages as Float64Array, expected, 1e-9)
      expectClose(
        details!.stateValues!,
        steps.map((step) => valueOfState(step)),
      )
    }
  })

  it("with λ = 1 is the distance of a return from the mean of its state", async () => {
    for (const steps of worlds) {
      const valueOfState = values(steps, 0.95)
      const distance = (step: Told) => discounted(steps, step, 0.95) - valueOfState(step)
      const expected = amongPeers(steps, ofTask, distance, (value, peers) => value - mean(peers))
      expectClose(await advantagesOf(stateValue({ lambda: 1, normalization: "none" }), steps), expected, 1e-9)
    }
  })

  it("does not depend on the order of episodes", () => expectOrderless(stateValue))

  it("gives exactly 0 for equal rewards", async () => {
    for (const lambda of [0, 0.95, 1])
      for (const normalization of ["sample", "none"] as const)
        for (const reward of [0, 0.1, 1 / 3, -1e6])
          expect(
            (await advantagesOf(stateValue({ lambda, normalization }), equalEpisodes(reward))).every(
              (one) => one === 0,
            ),
          ).toBe(true)
  })

  it("rejects λ above 1", () => {
    expect(() => stateValue({ lambda: 1.5 })).toThrow(/lambda must be .* not 1.5/)
  })
})

describe("g2po", () => {
  /** Definition in the words of the paper: a value of every state, a value of every transition's end. */
  function definition(
    steps: readonly Told[],
    options: Required<Pick<G2poOptions, "gamma" | "omega" | "normalization" | "invalidActionPenalty">>,
  ) {
    const gamma = options.gamma as number
    const valueOfState = values(steps, gamma)
    const penalty = (step: Told) => (step.valid ? 0 : (options.invalidActionPenalty as number))
    const compare = (value: number, peers: readonly number[]) =>
      (value - mean(peers)) / (options.normalization === "none" ? 1 : deviation(peers) + 1e-6)
    const end = (step: Told) => {
      const next = fromOn(steps, step)[1]
      return step.reward + (next ? gamma * valueOfState(next) : 0)
    }
    const state = ({ task, anchor }: Told) => `${task} ${anchor}`
    const task = (step: Told) => String(step.task)
    const outcomes = amongPeers(steps, task, (step) => returnOf(steps, step) - penalty(step), compare)
    const ends = amongPeers(steps, state, (step) => end(step) - penalty(step), compare)
    const gains = amongPeers(steps, task, (step) => end(step) - gamma * valueOfState(step), compare)
    return steps.map((_, row) => outcomes[row]! + (options.omega as number) * (ends[row]! + gains[row]!))
  }

  it.each([
    { gamma: 0.95, omega: 1, normalization: "sample", invalidActionPenalty: 0.1 },
    { gamma: 0.8, omega: 0.5, normalization: "none", invalidActionPenalty: 0 },
  ] as const)("compares transitions within states, and their gains within tasks: %o", async (options) => {
    for (const steps of worlds) expectClose(await advantagesOf(g2po(options), steps), definition(steps, options), 1e-8)
  })

  it("places the penalty in the reward where asked", async () => {
    const options = { gamma: 0.9, omega: 1, normalization: "none", invalidActionPenalty: 0.5 } as const
    for (const steps of worlds.slice(0, 5)) {
      const less = steps.map((step) => ({ ...step, reward: step.reward - (step.valid ? 0 : 0.5), valid: true }))
      const paid = await advantagesOf(g2po({ ...options, penaltyPlacement: "reward" }), steps)
      expectClose(paid, definition(less, { ...options, invalidActionPenalty: 0 }), 1e-8)
    }
  })

  it("is what the authors' code computes", async () => {
    // Two episodes of one task: A B (success, 10), A C (failure); the code has V(A) = (0.95² + 0) · 10 / 2, V(B) = 9.5, V(C) = 0.
    const steps = [
      ["win", "A", 0],
      ["win", "B", 10],
      ["loss", "A", 0],
      ["loss", "C", 0],
    ].map(([episode, anchor, reward]) => ({
      task: 0,
      episode: episode!,
      anchor: String(anchor),
      reward: Number(reward),
    }))
    const [V, gains] = [4.5125, [9.5 - 4.5125, 0.5, -4.5125, 0]]
    expect(V).toBeCloseTo((0.95 ** 2 * 10) / 2, 12)
    const ends = [4.75, 0, -4.75, 0] // only A was met twice
    expectClose(
      await advantagesOf(g2po({ normalization: "none" }), steps),
      gains.map((gain, row) => [5, 5, -5, -5][row]! + ends[row]! + gain - mean(gains)),
      1e-9,
    )
  })

  it("does not depend on the order of episodes", () => expectOrderless(g2po))

  it("gives exactly 0 for equal rewards without a discount", async () => {
    for (const reward of [0, 0.1, 1 / 3])
      expect((await advantagesOf(g2po({ gamma: 1 }), equalEpisodes(reward))).every((one) => one === 0)).toBe(true)
  })
})
