import { describe, expect, it } from "vitest"
import { ecpo } from "../../src/credit/ecpo.ts"
import { gigpo } from "../../src/credit/gigpo.ts"
import { expectClose } from "./close.ts"
import {
  advantagesOf,
  amongPeers,
  deviation,
  equalEpisodes,
  expectOrderless,
  fromOn,
  keyOf,
  mean,
  returnOf,
  sum,
  type Told,
  worlds,
} from "./worlds.ts"

interface Constants {
  readonly gamma: number
  readonly omega: number
  readonly kappa: number
  readonly tau: number
  readonly normalization: "none" | "sample"
}

function definition(steps: readonly Told[], { gamma, omega, kappa, tau, normalization }: Constants): number[] {
  const values = new Map(
    steps.map((step) => [step, sum(fromOn(steps, step).map(({ reward }, later) => gamma ** later * reward))]),
  )
  const value = (step: Told) => values.get(step)!
  const compare = (one: number, peers: readonly number[]) =>
    (one - mean(peers)) / (normalization === "none" ? 1 : deviation(peers) + 1e-6)
  const firsts = steps.filter(({ turn }) => turn === 0)
  const outcomes = amongPeers(
    firsts,
    ({ task }) => String(task),
    (step) => returnOf(steps, step),
    compare,
  )
  const state = ({ task, anchor }: Told) => `${task} ${anchor}`
  const byState = grouped(steps, state)
  const visits = (step: Told) => byState.get(state(step))!
  const byAction = grouped(steps, (step) => `${state(step)} ${step.record!.action}`)
  const same = (step: Told) => byAction.get(`${state(step)} ${step.record!.action}`)!
  const shrunk = (step: Told) => {
    const own = same(step).map(value)
    return (sum(own) + kappa * mean(visits(step).map(value))) / (own.length + kappa)
  }
  const trust = (step: Told) => {
    const all = visits(step)
    const middle = mean(all.map(value))
    const between = mean(all.map((other) => (mean(same(other).map(value)) - middle) ** 2))
    const within = mean(all.map((other) => (value(other) - mean(same(other).map(value))) ** 2))
    return (Math.tanh(all.length / tau) * between) / (between + within + 1e-6)
  }
  const compared = amongPeers(steps, state, shrunk, compare)
  return steps.map((step, row) => {
    const first = firsts.findIndex((other) => keyOf(other) === keyOf(step))
    return outcomes[first]! + omega * trust(step) * compared[row]!
  })
}

function grouped(steps: readonly Told[], key: (step: Told) => string): Map<string, Told[]> {
  const found = new Map<string, Told[]>()
  for (const step of steps) found.set(key(step), [...(found.get(key(step)) ?? []), step])
  return found
}

describe("ecpo", () => {
  it.each<Constants>([
    { gamma: 0.95, omega: 1, kappa: 2, tau: 4, normalization: "none" },
    { gamma: 0.9, omega: 0.5, kappa: 0, tau: 1, normalization: "none" },
    { gamma: 1, omega: 1, kappa: 5, tau: 20, normalization: "sample" },
  ])("weighs shrunken returns of actions by how much these differ: %o", async (constants) => {
    for (const steps of worlds)
      expectClose(await advantagesOf(ecpo(constants), steps), definition(steps, constants), 1e-8)
  })

  it("has GiGPO's episode advantage alone where a state saw one action only", async () => {
    for (const steps of worlds)
      expectClose(
        await advantagesOf(ecpo({ action: () => "any" }), steps),
        Array.from(await advantagesOf(gigpo({ omega: 0 }), steps)),
        1e-9,
      )
  })

  it("does not depend on the order of episodes", () => expectOrderless(ecpo))

  it("gives exactly 0 for equal rewards", async () => {
    for (const normalization of ["sample", "none"] as const)
      for (const reward of [0, 0.1, 1 / 3, -1e6])
        for (const action of [undefined, (_: unknown, row: number) => row % 3]) {
          const found = await advantagesOf(ecpo({ normalization, action }), equalEpisodes(reward))
          expect(found.every((one) => one === 0)).toBe(true)
        }
  })

  it("rejects steps without actions", async () => {
    const without = worlds[0]!.map(({ record: _, ...step }) => step)
    await expect(advantagesOf(ecpo(), without as Told[])).rejects.toThrow(/ecpo needs completions and actions/)
  })
})
