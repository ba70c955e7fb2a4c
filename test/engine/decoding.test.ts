import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { type Sequence, stepSequence } from "../../src/engine/sequence.ts"
import { Random } from "../../src/util/random.ts"
import { byRow } from "./by-row.ts"
import {
  architectures,
  gradients,
  logProbsOf,
  modelPath,
  randomTokens,
  readExpected,
  relativeError,
  surrogate,
  weightNames,
} from "./fixtures.ts"

// The same numbers by different ways: with and without a cache, packed and apart, in small batches and large.

describe.each(architectures)("the model %s", (name) => {
  const random = new Random(7)
  let policy: NativePolicy

  beforeAll(async () => {
    policy = await NativePolicy.open(modelPath(name), { maxPositions: 4096 })
  })
  afterAll(() => policy.dispose())

  /** Samples a completion to each prompt and compares its log-probabilities and entropies with the trainer's. */
  async function worstDifference(lengths: readonly number[], maxTokens: number, temperature: number): Promise<number> {
    const prompts = lengths.map((length) => randomTokens(length, random))
    const completions = await Promise.all(
      prompts.map((prompt, index) =>
        policy.sample({ prompt, maxTokens, temperature, stopTokens: [], key: random.derive(temperature, index).key }),
      ),
    )
    const rows = completions.map(({ tokens }, index) => stepSequence(prompts[index]!, tokens))
    // Greedy completions come with those at temperature 1.
    const found = byRow(rows, await policy.logProbs(rows, { needs: ["entropy"], temperature: temperature || 1 }))
    let worst = 0
    for (const [index, completion] of completions.entries())
      for (const name of ["logProbs", "entropies"] as const) {
        expect(completion[name]!.length).toBe(maxTokens)
        for (const [token, value] of completion[name]!.entries())
          worst = Math.max(worst, Math.abs(value - found[index]![name]![token]!))
      }
    return worst
  }

  it.each([1, 0.7, 0.5, 2, 0])(
    "gives sampled tokens the log-probability and entropy of training, at temperature %d",
    async (t) => {
      // A temperature below 1 magnifies the logits, and their rounding with them.
      const bound = 1e-5 / Math.min(1, t || 1)
      expect(await worstDifference([1, 2, 15, 16, 17, 31, 40, 90], 50, t)).toBeLessThan(bound)
    },
  )

  it("decodes after prompts longer than one step", async () => {
    expect(await worstDifference([1023, 1024, 1025, 3000], 40, 1)).toBeLessThan(2e-5)
  })

  const lengths = [1, 3, 16, 40, 64, 65, 130, 300]

  function randomRows(): Sequence[] {
    return lengths.map((length, index) => {
      const completion = randomTokens(1 + (length % 23), random)
      const logProbs = Float32Array.from(completion, () => -4.2 + random.uniform())
      return stepSequence(randomTokens(length, random), completion, { advantage: index - 3.5, logProbs })
    })
  }

  it("scores packed rows like each alone", async () => {
    const rows = randomRows()
    const packed = await logProbsOf(policy, rows)
    for (const [index, row] of rows.entries()) {
      const [alone] = await logProbsOf(policy, [row])
      expect(relativeError(packed[index]!, alone!)).toBeLessThan(1e-6)
    }
  })

  it("computes the same gradient in micro-batches of any size", async () => {
    const rows = randomRows()
    const loss = surrogate({ entropyWeight: 0.01 })
    const names = weightNames(readExpected(name))
    await policy.clearGradients()
    const whole = await policy.forwardBackward(rows, loss)
    const wanted = await gradients(policy, names)
    for (const microBatchTokens of [1, 100]) {
      const other = await NativePolicy.open(modelPath(name), { maxPositions: 4096, microBatchTokens })
      const report = await other.forwardBackward(rows, loss)
      expect(report.tokens).toBe(whole.tokens)
      expect(report.loss).toBeCloseTo(whole.loss, 6)
      for (const [part, value] of Object.entries(whole.metrics))
        expect(report.metrics[part], part).toBeCloseTo(value, 6)
      for (const [weight, gradient] of await gradients(other, names))
        expect(relativeError(gradient, wanted.get(weight)!), weight).toBeLessThan(3e-6)
      await other.dispose()
    }
  })
})
