import { describe, expect, it } from "vitest"
import { tokenLogProbs } from "../../src/kernels/token-log-probs.ts"
import { native } from "../../src/native/native.ts"
import { Random } from "../../src/util/random.ts"
import { badArgument } from "./bad-argument.ts"

describe("tokenLogProbs", () => {
  it("is the log-softmax of one token a row, with the entropy of the row", () => {
    const [ln2, ln4] = [Math.log(2), Math.log(4)]
    // Rows of (1/2, 1/4, 1/4), and of certainty.
    const logits = Float32Array.of(7 + ln2, 7, 7, 0, 0, 500)
    const { logProbs, entropies } = tokenLogProbs(logits, 3, Int32Array.of(1, 2))
    expect(logProbs[0]).toBeCloseTo(-ln4, 6)
    expect(logProbs[1]).toBe(0)
    expect(entropies[0]).toBeCloseTo(1.5 * ln2, 6)
    expect(entropies[1]).toBe(0)
  })

  it.each([1, 0.3, 4])("agrees with double precision for vocabularies of any size at temperature %d", (temperature) => {
    const random = new Random(1)
    for (const vocabulary of [1, 2, 15, 16, 17, 100, 1000, 32_000]) {
      const rows = 3
      const logits = Float32Array.from({ length: rows * vocabulary }, () => 20 * (random.uniform() - 0.5))
      const tokens = Int32Array.from({ length: rows }, () => random.below(vocabulary))
      const { logProbs, entropies } = tokenLogProbs(logits, vocabulary, tokens, { temperature })
      for (let row = 0; row < rows; row++) {
        const scores = Array.from(logits.subarray(row * vocabulary, (row + 1) * vocabulary), (z) => z / temperature)
        const most = scores.reduce((a, b) => Math.max(a, b))
        const logSum = most + Math.log(scores.reduce((sum, score) => sum + Math.exp(score - most), 0))
        expect(logProbs[row]).toBeCloseTo(scores[tokens[row]!]! - logSum, 4)
        const entropy = scores.reduce((sum, score) => sum - Math.exp(score - logSum) * (score - logSum), 0)
        expect(entropies[row]).toBeCloseTo(entropy, 4)
      }
    }
  })

  it("keeps a token of probability 0 apart from a row that is broken", () => {
    const logits = Float32Array.of(0, -Infinity, 0, NaN)
    const { logProbs, entropies } = tokenLogProbs(logits, 2, Int32Array.of(1, 0))
    expect([...logProbs]).toEqual([-Infinity, NaN])
    expect([...entropies]).toEqual([0, NaN])
  })

  it.skipIf(!native().deviceReport().unavailable)("explains why no GPU can be used", () => {
    const { message } = native().deviceReport().unavailable!
    const call = () => tokenLogProbs(new Float32Array(3), 3, Int32Array.of(0), { device: "cuda" })
    expect(call).toThrow(expect.objectContaining({ code: "DEVICE_UNAVAILABLE", message }))
  })

  it("accepts empty input", () => {
    expect(tokenLogProbs(new Float32Array(0), 5, new Int32Array(0)).logProbs.length).toBe(0)
  })

  it.each<[string, () => unknown, RegExp]>([
    ["logits of another size", () => tokenLogProbs(new Float32Array(5), 3, new Int32Array(2)), /need 6 logits, not 5/],
    [
      "a token beyond the vocabulary",
      () => tokenLogProbs(new Float32Array(3), 3, Int32Array.of(3)),
      /tokens\[0\] is 3/,
    ],
    ["a vocabulary of none", () => tokenLogProbs(new Float32Array(0), 0, new Int32Array(0)), /vocabulary must be/],
    [
      "a temperature of 0",
      () => tokenLogProbs(new Float32Array(3), 3, Int32Array.of(0), { temperature: 0 }),
      /temperature must be positive, not 0/,
    ],
    [
      "a device that it does not know",
      () => tokenLogProbs(new Float32Array(3), 3, Int32Array.of(0), { device: "tpu" as "cpu" }),
      /device is "tpu"; it must be "auto", "cpu" or "cuda"/,
    ],
  ])("rejects %s", (_, call, message) => {
    expect(call).toThrow(badArgument(message))
  })
})
