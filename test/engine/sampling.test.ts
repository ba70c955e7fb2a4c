import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Completion } from "../../src/engine/engine.ts"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { philox, Random } from "../../src/util/random.ts"
import { modelPath, readExpected } from "./fixtures.ts"

let policy: NativePolicy
beforeAll(async () => {
  policy = await NativePolicy.open(modelPath("qwen3"))
})
afterAll(() => policy.dispose())

const prompt = Int32Array.of(5, 40, 12, 3, 66)
const stopTokens: number[] = []

/** softmax(logits / temperature) after the last token, in double precision. */
async function nextDistribution(tokens: Int32Array, temperature: number): Promise<number[]> {
  const last = (await policy.logits(tokens)).slice(-policy.config.vocabularySize)
  const most = Math.max(...last)
  const weights = Array.from(last, (logit) => Math.exp((logit - most) / temperature))
  const sum = weights.reduce((a, b) => a + b)
  return weights.map((weight) => weight / sum)
}

/**
 * Pearson's chi-square of the draws as a standard normal deviate (Wilson & Hilferty, 1931), bins with fewer than ten expected
 * draws taken together. The deviates of p = 1e-4 are ±3.72, of which the lower one means "too even to be random".
 */
function deviate(draws: readonly number[], probabilities: readonly number[]): number {
  const counts = probabilities.map(() => 0)
  for (const draw of draws) counts[draw]!++
  const bins: { count: number; expected: number }[] = []
  const rest = { count: 0, expected: 0 }
  for (const [token, probability] of probabilities.entries()) {
    const bin = { count: counts[token]!, expected: probability * draws.length }
    if (bin.expected >= 10) bins.push(bin)
    else {
      rest.count += bin.count
      rest.expected += bin.expected
    }
  }
  if (rest.expected > 0) bins.push(rest)
  const chiSquare = bins.reduce((sum, { count, expected }) => sum + (count - expected) ** 2 / expected, 0)
  const freedom = bins.length - 1
  return ((chiSquare / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / Math.sqrt(2 / (9 * freedom))
}

async function draw(
  count: number,
  maxTokens: number,
  temperature: number,
  key: (i: number) => readonly [number, number],
) {
  const draws: Promise<Completion>[] = []
  for (let i = 0; i < count; i++) {
    draws.push(policy.sample({ prompt, maxTokens, temperature, stopTokens, key: key(i) }))
  }
  return await Promise.all(draws)
}

const keys: [string, (i: number) => readonly [number, number]][] = [
  ["forked keys", (i) => new Random(9).derive("draw", i).key],
  ["keys that count", (i) => [i, 0]],
]

describe.each(keys)("samples with %s", (_, key) => {
  it.each([1, 0.5, 1.7])("follow the model's distribution at temperature %d", async (temperature) => {
    const completions = await draw(20_000, 1, temperature, key)
    const found = deviate(
      completions.map(({ tokens }) => tokens[0]!),
      await nextDistribution(prompt, temperature),
    )
    expect(Math.abs(found)).toBeLessThan(3.72)
  })

  it("use new random numbers for the second token", async () => {
    const completions = await draw(20_000, 2, 1, key)
    const first = await nextDistribution(prompt, 1)
    const likely = first.indexOf(Math.max(...first))
    const seconds = completions.filter(({ tokens }) => tokens[0] === likely).map(({ tokens }) => tokens[1]!)
    expect(seconds.length).toBeGreaterThan(1000)
    const found = deviate(seconds, await nextDistribution(Int32Array.of(...prompt, likely), 1))
    expect(Math.abs(found)).toBeLessThan(3.72)
  })
})

describe("a sampled token", () => {
  it("is the Gumbel-max of Philox numbers, so that every device and version samples the same", async () => {
    const logits = (await policy.logits(prompt)).slice(-policy.config.vocabularySize)
    let compared = 0
    for (let i = 0; i < 300; i++) {
      const key = new Random(9).derive("draw", i).key
      const { tokens } = await policy.sample({ prompt, maxTokens: 1, temperature: 0.8, stopTokens, key })
      const scores = Array.from(logits, (logit, token) => {
        const word = philox(key, [token >> 2, 0, 0, 0])[token & 3]!
        return logit / 0.8 - Math.log(-Math.log1p(-(word + 0.5) / 2 ** 32))
      })
      const [best, second] = scores.toSorted((a, b) => b - a)
      if (best! - second! < 1e-4) continue // float32 may see it the other way round
      compared++
      expect(tokens[0]).toBe(scores.indexOf(best!))
    }
    expect(compared).toBeGreaterThan(290)
  })
})

describe("a completion", () => {
  const [, greedy] = readExpected("qwen3").greedy
  const { completion } = greedy!
  const request = { prompt: greedy!.prompt, maxTokens: 12, temperature: 0, stopTokens, key: [3, 4] as const }

  it("ends after a stop token, which is included", async () => {
    const stop = completion[5]!
    const wanted = completion.slice(0, completion.indexOf(stop) + 1)
    const { tokens, logProbs, finishReason } = await policy.sample({ ...request, stopTokens: [999, stop] })
    expect([...tokens]).toEqual(wanted)
    expect(logProbs.length).toBe(wanted.length)
    expect(finishReason).toBe("stop")
  })

  it("does not end because of a stop token at the end of the prompt", async () => {
    const stop = request.prompt.at(-1)!
    const { tokens } = await policy.sample({ ...request, maxTokens: 1, stopTokens: [stop] })
    expect(tokens.length).toBe(1)
  })

  it("has finish reason stop if the last permitted token is a stop token", async () => {
    const wanted = completion.slice(0, completion.indexOf(completion[5]!) + 1)
    const found = await policy.sample({ ...request, maxTokens: wanted.length, stopTokens: [wanted.at(-1)!] })
    expect(found.finishReason).toBe("stop")
    expect([...found.tokens]).toEqual(wanted)
  })

  it.each([1, 2, 12])("of at most %d tokens has that many", async (maxTokens) => {
    const { tokens, finishReason } = await policy.sample({ ...request, maxTokens })
    expect([...tokens]).toEqual(completion.slice(0, maxTokens))
    expect(finishReason).toBe("length")
  })

  it("can fill all positions of the model", async () => {
    const room = policy.maxPositions - request.prompt.length
    const { tokens } = await policy.sample({ ...request, maxTokens: room })
    expect(tokens.length).toBe(room)
  })

  it("does not depend on the key at temperature 0", async () => {
    expect(await policy.sample({ ...request, key: [8, 9] })).toEqual(await policy.sample(request))
  })

  it("depends on both words of the key at temperature 1", async () => {
    const texts = await Promise.all(
      [0, 1, 2, 3].map(async (i) => {
        const { tokens } = await policy.sample({ ...request, temperature: 1, key: [i & 1, i >> 1] })
        return tokens.join()
      }),
    )
    expect(new Set(texts).size).toBe(4)
  })

  it("is greedy at a very low temperature", async () => {
    const { tokens, logProbs, entropies } = await policy.sample({ ...request, temperature: 1e-6 })
    expect([...tokens]).toEqual(completion)
    expect([...logProbs].every((value) => value > -1e-6 && value <= 0)).toBe(true)
    expect([...entropies!].every((value) => value < 1e-6 && value >= 0)).toBe(true)
  })

  it.each([0, 0.7, 1, 3])(
    "reports at temperature %d the entropy of the sampling distribution, and at 0 that at 1",
    async (temperature) => {
      const { tokens, entropies } = await policy.sample({ ...request, temperature })
      expect(entropies!.length).toBe(tokens.length)
      for (const [at, entropy] of entropies!.entries()) {
        const before = Int32Array.of(...request.prompt, ...tokens.subarray(0, at))
        const p = await nextDistribution(before, temperature || 1)
        expect(Math.abs(entropy - p.reduce((sum, q) => sum - (q && q * Math.log(q)), 0))).toBeLessThan(1e-5)
      }
    },
  )
})
