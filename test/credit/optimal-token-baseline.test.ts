import { describe, expect, it } from "vitest"
import { optimalTokenBaseline } from "../../src/credit/optimal-token-baseline.ts"
import { train } from "../../src/training/train.ts"
import { Random } from "../../src/util/random.ts"
import { tableSetup } from "../training/table-setup.ts"
import { creditOf, equalEpisodes, keyOf, sum, type Told, worlds } from "./worlds.ts"

interface Token {
  readonly probability: number
  readonly squares: number
  readonly reward: number
}

/** Tokens of every step, the reward on the last; Σ π² is at least that of the token and at most with all else on one other. */
function tokensOf(steps: readonly Told[], random: Random): Map<Told, Token[]> {
  const draw = ({ length, reward }: Told) =>
    Array.from({ length }, (_, t): Token => {
      const probability = 0.05 + 0.9 * random.uniform()
      const squares = probability ** 2 + random.uniform() * (1 - probability) ** 2
      return { probability, squares, reward: t + 1 === length ? reward : 0 }
    })
  return new Map(steps.map((step) => [step, draw(step)]))
}

const statistics = (steps: readonly Told[], tokens: ReadonlyMap<Told, readonly Token[]>) => ({
  old: steps.map((step) => Float64Array.from(tokens.get(step)!, ({ probability }) => Math.log(probability))),
  squares: steps.map((step) => Float64Array.from(tokens.get(step)!, ({ squares }) => squares)),
})

describe("optimalTokenBaseline", () => {
  it.each(["zero", "kept"] as const)(
    "is the mean return at each token by the gradient's norm so far, tail %s",
    async (tail) => {
      const random = new Random(5)
      let tails = 0
      for (const steps of worlds.slice(0, 6)) {
        const tokens = tokensOf(steps, random)
        const episodes = [...new Set(steps.map(keyOf))].map((key) => {
          const own = steps.filter((step) => keyOf(step) === key).sort((a, b) => a.turn - b.turn)
          return { task: own[0]!.task, own, all: own.flatMap((step) => tokens.get(step)!) }
        })
        const still = (all: readonly Token[], t: number) => sum(all.slice(t).map(({ reward }) => reward))
        const norm = (all: readonly Token[], t: number) =>
          sum(all.slice(0, t + 1).map(({ probability, squares }) => 1 - 2 * probability + squares))
        const { advantages } = await creditOf(optimalTokenBaseline({ tail }), steps, statistics(steps, tokens))
        for (const { task, own, all } of episodes) {
          const peers = episodes.filter((other) => other.task === task).map((other) => other.all)
          const found = own.flatMap((step) => [...(advantages as Float32Array[])[steps.indexOf(step)]!])
          for (const [t, value] of found.entries()) {
            const there = peers.filter(({ length }) => length > t)
            const weights = there.map((other) => norm(other, t))
            const baseline = sum(there.map((other, i) => weights[i]! * still(other, t))) / sum(weights)
            if (there.length === 1) tails++
            const expected = there.length === 1 && tail === "zero" ? still(all, t) : still(all, t) - baseline
            expect(value).toBeCloseTo(expected, 5)
          }
        }
      }
      expect(tails).toBeGreaterThan(20)
    },
  )

  it("is what verl computes", async () => {
    // compute_optimal_token_baseline_advantage of verl 0.9.1, for returns of 1 and 0 and lengths of 2 and 1
    const steps = [
      { task: 0, episode: 0, anchor: "", reward: 1, length: 2 },
      { task: 0, episode: 1, anchor: "", reward: 0, length: 1 },
    ]
    const old = [Float64Array.of(Math.log(0.5), Math.log(0.8)), Float64Array.of(Math.log(0.2))]
    const squares = [Float64Array.of(0.5, 0.66), Float64Array.of(0.36)]
    const { advantages } = await creditOf(optimalTokenBaseline(), steps, { old, squares })
    const [first, second] = advantages as Float32Array[]
    expect([...first!, ...second!].map((value) => Number(value.toFixed(6)))).toEqual([0.657534, 1, -0.342466])
  })

  it("gives exactly 0 for equal rewards of episodes of one length", async () => {
    const random = new Random(1)
    for (const reward of [0, 0.1, 1 / 3]) {
      const steps = equalEpisodes(reward).map((step) => ({ ...step, length: 3 }))
      const { advantages } = await creditOf(optimalTokenBaseline(), steps, statistics(steps, tokensOf(steps, random)))
      expect((advantages as Float32Array[]).every((tokens) => tokens.every((one) => one === 0))).toBe(true)
    }
  })

  it("gets the sums of squared probabilities in training", async () => {
    const sums: number[] = []
    const estimator = optimalTokenBaseline()
    await train({
      ...tableSetup({ iterations: 1 }),
      estimator: {
        ...estimator,
        estimate(batch, context) {
          for (const tokens of batch.statistics!.squares!) sums.push(...tokens)
          return estimator.estimate(batch, context)
        },
      },
    })
    // A table begins with equal logits: 32 of its 128 tokens have a probability of 1/128.
    expect(sums.length).toBeGreaterThan(10)
    for (const one of sums) expect(one).toBeCloseTo(32 / 128 ** 2, 6)
  })

  it("rejects a batch without statistics", async () => {
    await expect(creditOf(optimalTokenBaseline(), worlds[0]!)).rejects.toThrow(
      /needs statistics.old and statistics.squares/,
    )
  })
})
