import { describe, expect, it } from "vitest"
import { estimate } from "../../src/credit/as-estimator.ts"
import { type BatchStep, toBatch } from "../../src/credit/batch.ts"
import type { Estimator, EstimatorContext } from "../../src/credit/estimator.ts"
import { type PpoOptions, ppo } from "../../src/credit/ppo.ts"
import { reinforcePlusPlus } from "../../src/credit/reinforce-plus-plus.ts"
import { generalizedAdvantages } from "../../src/credit/traces.ts"
import { Random } from "../../src/util/random.ts"
import { expectClose } from "./close.ts"
import { interleave } from "./steps.ts"

const context: EstimatorContext = { progress: { iteration: 0, iterations: 1 }, random: new Random(0) }

const bad = (message: RegExp) =>
  expect.objectContaining({ code: "BAD_ARGUMENT", message: expect.stringMatching(message) })

describe("generalizedAdvantages", () => {
  it("match computation by hand, per episode", () => {
    // Episode 0: moments 0, 2, 3; episode 1: moment 1. γ = 1/2, λ = 1/2.
    const found = generalizedAdvantages(
      Float64Array.of(0, 7, 1, 2),
      Float64Array.of(0.5, 3, 1, 4),
      { gamma: 0.5, lambda: 0.5 },
      Int32Array.of(0, 1, 0, 0),
    )
    // δ of the episode: 0 + 1/2 - 1/2, 1 + 2 - 1, 2 - 4
    expectClose(found, [0 + 0.25 * (2 - 0.25 * 2), 7 - 3, 2 - 0.25 * 2, -2])
  })

  it("equal the next temporal difference with lambda 0, and the remaining return with lambda 1", () => {
    const [rewards, values, one] = [Float64Array.of(1, 2, 4), Float64Array.of(3, 5, 6), new Int32Array(3)]
    expectClose(generalizedAdvantages(rewards, values, { gamma: 0.5, lambda: 0 }, one), [0.5, 0, -2])
    expectClose(generalizedAdvantages(rewards, values, { gamma: 0.5, lambda: 1 }, one), [0, -1, -2])
  })
})

interface Step extends BatchStep {
  readonly length: number
  readonly values: Float64Array
}

/** Episodes of 1 to 4 steps of 1 to 5 tokens; half of the steps say where on their tokens the reward falls. */
function randomSteps(random: Random): Step[] {
  const number = () => random.below(2001) / 500 - 2
  const episodes = Array.from({ length: 2 + random.below(5) }, (_, id) =>
    Array.from({ length: 1 + random.below(4) }, (): Step => {
      const length = 1 + random.below(5)
      const tokenRewards = Float64Array.from({ length }, number)
      const isSpread = random.below(2) === 0
      const reward = isSpread ? tokenRewards.reduce((sum, one) => sum + one, 0) : number()
      return {
        task: id % 2,
        episode: id,
        length,
        reward,
        valid: random.below(3) > 0,
        ...(isSpread && { tokenRewards }),
        values: Float64Array.from({ length }, number),
      }
    }),
  )
  return interleave(episodes, random)
}

const batches = Array.from({ length: 25 }, (_, seed) => randomSteps(new Random(seed)))

interface Token {
  readonly reward: number
  readonly value: number
}

/** What `trace` makes of the tokens of each episode in a row, put back where they stood, [steps][tokens]. */
function perEpisode(steps: readonly Step[], penalty: number, trace: (tokens: readonly Token[]) => number[]) {
  const found: number[][] = steps.map(() => [])
  for (const episode of new Set(steps.map((step) => step.episode))) {
    const own = steps.flatMap((step, row) => (step.episode === episode ? [row] : []))
    const tokens = own.flatMap((row) => {
      const { length, reward, tokenRewards, values, valid } = steps[row]!
      const paid = valid === false ? penalty : 0
      return Array.from(values, (value, token) => {
        const isLast = token === length - 1
        return { value, reward: (tokenRewards?.[token] ?? (isLast ? reward : 0)) - (isLast ? paid : 0) }
      })
    })
    const traced = trace(tokens)
    for (const row of own) found[row] = traced.splice(0, steps[row]!.length)
  }
  return found
}

/** Σ_k (γλ)^k (r_{t+k} + γ V_{t+k+1} - V_{t+k}), from every t anew. */
const gae = (gamma: number, lambda: number) => (tokens: readonly Token[]) =>
  tokens.map((_, t) =>
    tokens
      .slice(t)
      .map(({ reward, value }, k) => {
        const next = tokens[t + k + 1]?.value ?? 0
        return (gamma * lambda) ** k * (reward + gamma * next - value)
      })
      .reduce((sum, one) => sum + one, 0),
  )

const discounted = (gamma: number) => (tokens: readonly Token[]) =>
  tokens.map((_, t) => tokens.slice(t).reduce((sum, { reward }, k) => sum + gamma ** k * reward, 0))

function whitened(table: readonly number[][]): number[] {
  const all = table.flat()
  const mean = all.reduce((sum, one) => sum + one, 0) / all.length
  const variance = all.reduce((sum, one) => sum + (one - mean) ** 2, 0) / (all.length - 1)
  return all.map((one) => (one - mean) / Math.sqrt(variance + 1e-8))
}

const joined = (columns: readonly Float32Array[]) => columns.flatMap((column) => [...column])

async function creditOf(estimator: Estimator, steps: readonly Step[]) {
  const batch = toBatch(steps, { value: steps.map(({ values }) => values) })
  const { advantages, returns } = await estimate(estimator, batch, context)
  return { advantages: joined(advantages as Float32Array[]), returns: joined(returns!) }
}

describe("ppo", () => {
  it.each<[number, number, number]>([
    [1, 1, 0],
    [0.9, 0.8, 0],
    [0.97, 0.5, 0.25],
  ])(
    "is GAE over the tokens of an episode, with gamma %d, lambda %d and a penalty of %d",
    async (gamma, lambda, penalty) => {
      for (const steps of batches) {
        const expected = perEpisode(steps, penalty, gae(gamma, lambda))
        const options = { gamma, lambda, invalidActionPenalty: penalty }
        const found = await creditOf(ppo({ ...options, whiten: false }), steps)
        expectClose(found.advantages, expected.flat(), 1e-5)
        const values = steps.flatMap((step) => [...step.values])
        expectClose(
          found.returns,
          expected.flat().map((advantage, token) => advantage + values[token]!),
          1e-5,
        )
        const scaled = await creditOf(ppo(options), steps)
        expectClose(scaled.advantages, whitened(expected), 1e-5)
        expect(scaled.returns).toEqual(found.returns)
      }
    },
  )

  it("over steps equals the step's advantage for every token, as computed by hand", async () => {
    const steps: Step[] = [
      { task: 0, episode: 0, reward: 0, length: 2, values: Float64Array.of(0.5, 90) },
      { task: 0, episode: 1, reward: 3, length: 1, values: Float64Array.of(1) },
      { task: 0, episode: 0, reward: 1, length: 3, values: Float64Array.of(0.25, 80, 70), valid: false },
    ]
    const settings = { level: "step", gamma: 0.5, lambda: 0.5, invalidActionPenalty: 0.25 } as const
    const plain = await creditOf(ppo({ ...settings, whiten: false }), steps)
    // δ: 0 + 1/8 - 1/2 and 3/4 - 1/4; the other episode 3 - 1
    const [early, late] = [-0.375 + 0.25 * 0.5, 0.5]
    expectClose(plain.advantages, [early, early, 2, late, late, late])
    expectClose(plain.returns, [early + 0.5, early + 0.5, 3, late + 0.25, late + 0.25, late + 0.25])
    const scaled = await creditOf(ppo(settings), steps)
    expectClose(scaled.advantages, whitened([[early, early, 2, late, late, late]]), 1e-6)
  })

  it("depends neither on the order of episodes nor on how they interleave", async () => {
    const random = new Random(3)
    for (const level of ["token", "step"] as const)
      for (const steps of batches.slice(0, 8)) {
        const episodes = [...new Set(steps.map((step) => step.episode))].map((episode) =>
          steps.filter((step) => step.episode === episode),
        )
        const other = interleave(random.shuffled(episodes), random)
        const table = async (given: readonly Step[]) => {
          const batch = toBatch(given, { value: given.map(({ values }) => values) })
          return (await estimate(ppo({ level, gamma: 0.9, lambda: 0.9 }), batch, context)).advantages as Float32Array[]
        }
        const [expected, found] = [await table(steps), await table(other)]
        expectClose(joined(steps.map((step) => found[other.indexOf(step)]!)), joined(expected), 1e-6)
      }
  })

  it("accepts schedules", async () => {
    const moving = ppo({ lambda: { from: 0, to: 1 }, whiten: false })
    const batch = toBatch(batches[0]!, { value: batches[0]!.map(({ values }) => values) })
    const half = await estimate(moving, batch, { ...context, progress: { iteration: 5, iterations: 10 } })
    expect(half).toEqual(await estimate(ppo({ lambda: 0.5, whiten: false }), batch, context))
  })

  it("states its needs", async () => {
    expect(ppo().needs).toEqual(["value"])
    await expect(estimate(ppo(), toBatch(batches[0]!), context)).rejects.toThrow(bad(/give statistics\.value/))
    const empty = await estimate(ppo(), toBatch([], { value: [] }), context)
    expect(empty).toEqual({ advantages: [], returns: [] })
  })

  it.each<[PpoOptions, RegExp]>([
    [{ gamma: 0 }, /ppo: gamma must be above 0 and at most 1/],
    [{ lambda: 1.5 }, /ppo: lambda must be a number from 0 to 1/],
    [{ level: "episode" as "step" }, /ppo: level must be "token" or "step"/],
    [{ whiten: 1 as unknown as boolean }, /ppo: whiten must be true or false/],
    [{ invalidActionPenalty: -1 }, /ppo: invalidActionPenalty must be/],
  ])("rejects %j", (options, message) => {
    expect(() => ppo(options)).toThrow(bad(message))
  })
})

describe("reinforcePlusPlus", () => {
  it.each<[number, number]>([
    [1, 0],
    [0.9, 0.25],
  ])("is the discounted return of each token, whitened, with gamma %d and a penalty of %d", async (gamma, penalty) => {
    for (const steps of batches) {
      const expected = perEpisode(steps, penalty, discounted(gamma))
      const found = await creditOf(reinforcePlusPlus({ gamma, invalidActionPenalty: penalty }), steps)
      expectClose(found.returns, expected.flat(), 1e-5)
      expectClose(found.advantages, whitened(expected), 1e-5)
    }
  })

  it("gives exactly 0 for equal returns", async () => {
    const same = [0, 1, 2].map((id): Step => {
      return { task: 0, episode: id, reward: 0.1, length: 1 + id, values: new Float64Array(1 + id) }
    })
    expect((await creditOf(reinforcePlusPlus(), same)).advantages).toEqual(Array(6).fill(0))
  })

  it("rejects invalid options", () => {
    expect(() => reinforcePlusPlus({ gamma: 2 })).toThrow(bad(/reinforce-plus-plus: gamma must be above 0/))
    expect(() => reinforcePlusPlus({ lambda: 1 } as object)).toThrow(bad(/lambda is not an option/))
  })
})
