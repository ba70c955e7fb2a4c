import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { tokenLogProbs } from "../../src/kernels/token-log-probs.ts"
import { byRow } from "./by-row.ts"
import {
  architectures,
  crossEntropy,
  type Expected,
  logProbsOf,
  modelPath,
  partsOf,
  readExpected,
  relativeError,
  weightNames,
} from "./fixtures.ts"

// What transformers computes in float64 (scripts/fixtures) is the truth. The bounds are some ten times what float32 shows.

async function logitsError(policy: NativePolicy, expected: Expected): Promise<number> {
  const logits: number[] = []
  for (const row of expected.logits) logits.push(...(await policy.logits(row)))
  return relativeError(logits, expected.tensors.get("logits")!)
}

describe.each(architectures)("the model %s", (name) => {
  const expected = readExpected(name)
  const weights = weightNames(expected)
  let policy: NativePolicy

  beforeAll(async () => {
    policy = await NativePolicy.open(modelPath(name))
  })
  afterAll(() => policy.dispose())
  beforeEach(() => policy.clearGradients())

  it("counts its parameters and names every one", async () => {
    let count = 0
    for (const weight of weights) count += (await policy.tensor(weight)).length
    expect(policy.parameters).toBe(count)
  })

  it("computes the logits", async () => {
    expect(await logitsError(policy, expected)).toBeLessThan(1e-5)
  })

  describe.each(expected.policy)("with the policy loss at temperature $loss.temperature", (one) => {
    const { loss, rows, logProbs, entropy, report } = one
    const temperature = loss.temperature!

    it("computes the log-probability of every token", async () => {
      const found = await logProbsOf(policy, rows, { temperature })
      for (const [row, values] of logProbs.entries()) expect(relativeError(found[row]!, values)).toBeLessThan(1e-5)
    })

    it("computes the entropy at every token, from its logits", async () => {
      const vocabulary = policy.config.vocabularySize
      const scored = byRow(rows, await policy.logProbs(rows, { temperature, needs: ["entropy"] }))
      for (const [index, row] of rows.entries()) {
        const { prompt, completion } = partsOf(row)
        const logits = await policy.logits(row.tokens)
        const from = (prompt.length - 1) * vocabulary
        const scores = logits.slice(from, from + completion.length * vocabulary)
        const found = tokenLogProbs(scores, vocabulary, completion, { temperature })
        expect(relativeError(found.entropies, entropy[index]!)).toBeLessThan(1e-5)
        expect(relativeError(scored[index]!.entropies!, entropy[index]!)).toBeLessThan(1e-5)
        expect(relativeError(found.logProbs, logProbs[index]!)).toBeLessThan(1e-5)
      }
    })

    it("reports the loss and its terms", async () => {
      const found = await policy.forwardBackward(rows, loss)
      expect(Object.keys(found.metrics).sort()).toEqual(Object.keys(report.metrics).sort())
      for (const [part, value] of Object.entries(report.metrics))
        expect(found.metrics[part], part).toBeCloseTo(value, 5)
      expect(found.loss).toBeCloseTo(report.loss, 5)
      expect(found.tokens).toBe(report.tokens)
    })

    it("computes the gradient of every parameter", async () => {
      await policy.forwardBackward(rows, loss)
      for (const weight of weights) {
        const wanted = expected.tensors.get(`policy.${expected.policy.indexOf(one)}.${weight}`)!
        expect(relativeError(await policy.tensor(weight, "gradients"), wanted), weight).toBeLessThan(1e-4)
      }
    })

    it("adds the gradients of two calls", async () => {
      await policy.forwardBackward(rows, loss)
      await policy.forwardBackward(rows, loss)
      for (const weight of weights) {
        const wanted = expected.tensors.get(`policy.${expected.policy.indexOf(one)}.${weight}`)!
        const twice = wanted.map((value) => 2 * value)
        expect(relativeError(await policy.tensor(weight, "gradients"), twice), weight).toBeLessThan(1e-4)
      }
    })
  })

  it.each(expected.greedy)("generates $completion at temperature 0", async ({ prompt, completion, logProbs }) => {
    const found = await policy.sample({ prompt, maxTokens: 12, temperature: 0, stopTokens: [], key: [1, 2] })
    expect([...found.tokens]).toEqual(completion)
    expect(relativeError(found.logProbs, logProbs)).toBeLessThan(1e-5)
    expect(found.finishReason).toBe("length")
  })

  // Last: it moves the weights.
  it("takes ten AdamW steps", async () => {
    const { step, rows, losses, gradientNorms } = expected.adamw
    for (const [index, loss] of losses.entries()) {
      const report = await policy.forwardBackward(rows, crossEntropy)
      const { gradientNorm, skipped } = await policy.optimizerStep(step)
      expect(skipped).toBe(false)
      expect(report.loss, `loss ${index}`).toBeCloseTo(loss, 4)
      expect(Math.abs(gradientNorm / gradientNorms[index]! - 1), `norm ${index}`).toBeLessThan(3e-4)
    }
    expect(policy.optimizerSteps).toBe(10)
    for (const weight of weights) {
      // By norm: AdamW divides by the gradient's size, so an element whose gradient is almost 0 may go anywhere. The float32
      // of transformers itself is 6e-5 away.
      const [found, wanted] = [await policy.tensor(weight), expected.tensors.get(`adamw.${weight}`)!]
      const difference = Math.hypot(...found.map((value, index) => value - wanted[index]!))
      expect(difference / Math.hypot(...wanted), weight).toBeLessThan(2e-4)
    }
  })
})

describe("weights stored in other ways", () => {
  it.each([
    ["in several files", "qwen2-sharded"],
    ["as bfloat16", "qwen3-bf16"],
    ["as float16, with an older config.json", "llama-f16"],
  ])("give the logits of transformers: %s", async (_, name) => {
    const policy = await NativePolicy.open(modelPath(name))
    expect(await logitsError(policy, readExpected(name))).toBeLessThan(1e-5)
    await policy.dispose()
  })

  it("can be in several files or one", async () => {
    const [one, several] = [
      await NativePolicy.open(modelPath("qwen2")),
      await NativePolicy.open(modelPath("qwen2-sharded")),
    ]
    for (const name of weightNames(readExpected("qwen2")))
      expect(await several.tensor(name)).toEqual(await one.tensor(name))
    await Promise.all([one.dispose(), several.dispose()])
  })
})
