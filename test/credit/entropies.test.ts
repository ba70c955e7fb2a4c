import { describe, expect, it } from "vitest"
import { aepo } from "../../src/credit/aepo.ts"
import { empg } from "../../src/credit/empg.ts"
import type { Batch, Credit, Estimator } from "../../src/credit/estimator.ts"
import { grpo } from "../../src/credit/grpo.ts"
import { Random } from "../../src/util/random.ts"
import { expectClose } from "./close.ts"
import {
  advantagesOf,
  creditOf,
  deviation,
  equalEpisodes,
  keyOf,
  mean,
  rearranged,
  type Told,
  worlds,
} from "./worlds.ts"

const entropyOf = (step: Told) => {
  const random = new Random(step.turn).derive(keyOf(step))
  return Float32Array.from({ length: step.length }, () => random.below(100) / 25)
}
const statistics = (steps: readonly Told[]): Batch["statistics"] => ({ entropy: steps.map(entropyOf) })

/** GRPO, which leaves out a step in every three, or gives each token an advantage of its own. */
const skipping = (steps: readonly Told[]): Estimator => ({
  name: "skipping",
  estimate: async (batch, context) => ({
    ...(await grpo().estimate(batch, context)),
    skip: Uint8Array.from(steps, ({ turn }) => (turn % 3 === 1 ? 1 : 0)),
  }),
})
const perToken: Estimator = {
  name: "per-token",
  estimate: (batch): Credit => ({
    advantages: Array.from(batch.lengths, (length, row) =>
      Float32Array.from({ length }, (_, token) => (row % 5) + token),
    ),
  }),
}
const tokensOf = ({ advantages }: Credit) => (advantages as Float32Array[]).map((tokens) => [...tokens])

function empgOf(steps: readonly Told[], under: ArrayLike<number>, isLearned: (step: Told) => boolean): number[] {
  const [k, zeta, kf] = [2, 0.1, 3]
  const entropies = steps.map((step) => mean([...entropyOf(step)]))
  const learned = entropies.filter((_, row) => isLearned(steps[row]!))
  const h = entropies.map((one) => (one - Math.min(...learned)) / (Math.max(...learned) - Math.min(...learned) + 1e-8))
  const g = h.map((one) => Math.exp(-k * one))
  const middle = mean(g.filter((_, row) => isLearned(steps[row]!)))
  const changed = steps.map((step, row) => {
    const next = steps.findIndex((other) => keyOf(other) === keyOf(step) && other.turn === step.turn + 1)
    return (under[row]! * g[row]!) / middle + (next < 0 ? 0 : zeta * Math.exp(-kf * h[next]!))
  })
  const centre = mean(changed.filter((_, row) => isLearned(steps[row]!)))
  return changed.map((one) => one - centre)
}

describe("empg", () => {
  const how = { sharpness: 2, clarity: 0.1, claritySharpness: 3 }
  it("matches its definition, around GRPO and around an estimator that skips steps", async () => {
    for (const steps of worlds) {
      const under = await advantagesOf(grpo(), steps)
      const all = await advantagesOf(empg({ estimator: { name: "grpo" }, ...how }), steps, statistics(steps))
      expectClose(
        all,
        empgOf(steps, under, () => true),
        1e-9,
      )
      const { advantages, skip } = await creditOf(
        empg({ estimator: skipping(steps), ...how }),
        steps,
        statistics(steps),
      )
      const isLearned = ({ turn }: Told) => turn % 3 !== 1
      const expected = empgOf(steps, under, isLearned)
      const kept = (values: ArrayLike<number>) => Array.from(values).filter((_, row) => isLearned(steps[row]!))
      expectClose(kept(advantages as Float64Array), kept(expected), 1e-9)
      expect(skip).toEqual(Uint8Array.from(steps, (step) => (isLearned(step) ? 0 : 1)))
    }
  })

  it("changes the advantages of tokens like those of their step", async () => {
    const steps = worlds[0]!
    const found = tokensOf(await creditOf(empg({ estimator: perToken, clarity: 0 }), steps, statistics(steps)))
    const values = found.flat()
    expect(mean(values)).toBeCloseTo(0, 5)
    for (const tokens of found)
      if (tokens.length > 2) expect(tokens[2]! - tokens[1]!).toBeCloseTo(tokens[1]! - tokens[0]!, 5)
    expect(found.map(({ length }) => length)).toEqual(steps.map(({ length }) => length))
  })

  it("gives exactly 0 for equal rewards without the bonus", async () => {
    const steps = equalEpisodes(0.1)
    const found = await advantagesOf(empg({ clarity: 0 }), steps, statistics(steps))
    expect(found.every((value) => value === 0)).toBe(true)
  })
})

describe("aepo", () => {
  it.each(["sample", "population"] as const)("gives what its definition says, over the %s deviation", async (kind) => {
    for (const steps of worlds.slice(0, 6)) {
      const under = await advantagesOf(grpo(), steps)
      const entropies = steps.map((step) => [...entropyOf(step)])
      const weigh = (value: number, all: readonly number[]) =>
        1 + 0.4 * ((value - mean(all)) / (deviation(all, kind) + 1e-8))
      const options = { estimator: { name: "grpo" }, weight: 0.4, std: kind } as const
      const tokens = tokensOf(await creditOf(aepo(options), steps, statistics(steps)))
      expectClose(
        tokens.flat(),
        entropies.flatMap((own, row) => own.map((one) => under[row]! * weigh(one, entropies.flat()))),
        1e-6,
      )
      const byStep = await advantagesOf(aepo({ ...options, level: "step" }), steps, statistics(steps))
      const means = entropies.map(mean)
      expectClose(
        byStep,
        means.map((one, row) => under[row]! * weigh(one, means)),
        1e-9,
      )
    }
  })

  it("weights each token of per-token advantages, and changes nothing if entropies are equal", async () => {
    const steps = worlds[1]!
    const equal = { entropy: steps.map(({ length }) => new Float32Array(length).fill(0.7)) }
    const under = tokensOf(await creditOf(perToken, steps))
    expect(tokensOf(await creditOf(aepo({ estimator: perToken }), steps, equal))).toEqual(under)
    const changed = tokensOf(await creditOf(aepo({ estimator: perToken }), steps, statistics(steps)))
    expect(changed).not.toEqual(under)
  })
})

describe.each([
  ["empg", empg],
  ["aepo", (options: object) => aepo({ level: "step", ...options })],
] as const)("%s", (name, make) => {
  it("does not depend on the order of episodes", async () => {
    const random = new Random(7)
    for (const steps of worlds.slice(0, 4)) {
      const expected = await advantagesOf(make({}), steps, statistics(steps))
      const other = rearranged(steps, random)
      const found = await advantagesOf(make({}), other, statistics(other))
      expectClose(
        steps.map((step) => found[other.indexOf(step)]!),
        expected,
        1e-9,
      )
    }
  })

  it("modifies GiGPO by default, or any other estimator, and requests entropies", async () => {
    expect(make({})).toMatchObject({ name, needs: ["entropy"], groups: "wanted" })
    expect(make({ estimator: { name: "ppo" } }).needs).toEqual(["value", "entropy"])
    expect(make({ estimator: { name: "ema-grpo" } }).state).toBeTypeOf("function")
    await expect(creditOf(make({}), worlds[0]!)).rejects.toThrow(
      new RegExp(`${name} needs the entropy of each sampled token`),
    )
  })

  it("rejects invalid options", () => {
    expect(() => make({ estimator: { name: "gigpoo" } } as object)).toThrow(
      /estimator.name must be .* Did you mean gigpo\?/,
    )
    expect(() => make({ estimator: { name: "grpo", epsilon: -1 } })).toThrow(/estimator.epsilon must be/)
    expect(() => make({ estimator: 7 } as object)).toThrow(/estimator must be/)
    expect(() => make({ epsilon: -1 })).toThrow(/epsilon must be/)
  })
})
