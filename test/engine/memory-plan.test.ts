import { describe, expect, it } from "vitest"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { memoryPlan } from "../../src/engine/native/options.ts"
import { stepSequence } from "../../src/engine/sequence.ts"
import { Random } from "../../src/util/random.ts"
import { crossEntropy } from "./fixtures.ts"

/** Qwen2.5 7B. */
const large = {
  architecture: "Qwen2",
  vocabularySize: 152064,
  hiddenSize: 3584,
  intermediateSize: 18944,
  layers: 28,
  heads: 28,
  keyValueHeads: 4,
  headSize: 128,
  rmsNormEpsilon: 1e-6,
  ropeTheta: 1e6,
  tieEmbeddings: false,
  queryKeyValueBias: true,
  queryKeyNorm: false,
  maxPositions: 32768,
} as const
const weights = 7_615_616_512 // as its model card says: 7.61 B

const cuda = { device: "cuda" } as const

describe("the memory plan", () => {
  it("of a 7B model on a GPU is computed without a GPU", () => {
    const plan = memoryPlan(large, cuda)
    // bf16 and float32 of every weight, float32 gradients and two moments; beside them only the rotary table.
    expect(plan.weights).toBe(weights * 6 + 32768 * 128 * 4)
    expect(plan.gradients).toBe(weights * 4)
    expect(plan.moments).toBe(weights * 8)
    expect(plan.reference).toBe(0)
    expect(plan.shared).toBe(true)
    expect(plan.total).toBeGreaterThan(plan.weights + plan.gradients + plan.moments)
    expect(plan.text).toMatch(/^weights 45\.7 GB, gradients 30\.5 GB, moments 60\.9 GB, .*together/)
  })

  it("shrinks with bfloat16 moments, recomputation, an adapter, and without training", () => {
    const full = memoryPlan(large, cuda)
    expect(memoryPlan(large, { ...cuda, optimizerPrecision: "bfloat16" }).moments).toBe(weights * 4)
    expect(memoryPlan(large, { ...cuda, recompute: "block" }).activations).toBeLessThan(full.activations / 2)
    const lora = memoryPlan(large, { ...cuda, lora: { rank: 32 }, reference: true })
    // Of rank 32: per layer q, k, v, o, gate, up, down.
    const pairs = [3584 + 3584, 3584 + 512, 3584 + 512, 3584 + 3584, 3584 + 18944, 3584 + 18944, 18944 + 3584]
    const trained = 28 * 32 * pairs.reduce((a, b) => a + b)
    expect(lora.weights).toBe(weights * 2 + trained * 6 + 32768 * 128 * 4)
    expect(lora.gradients).toBe(trained * 4)
    expect(lora.reference).toBe(trained * 2)
    const sampling = memoryPlan(large, { ...cuda, training: false })
    expect(sampling).toMatchObject({ gradients: 0, moments: 0, activations: 0 })
    expect(memoryPlan(large, { ...cuda, reference: true }).reference).toBe(weights * 2)
  })

  it("that is too large is rejected with settings that fit", () => {
    const plan = () => memoryPlan(large, cuda, 80e9)
    expect(plan).toThrow(
      /This needs weights 45\.7 GB.*but 80\.0 GB are free\. It would fit with .*lora: \{ rank: 32 \}/,
    )
    const lora = memoryPlan(large, { ...cuda, lora: { rank: 32 }, recompute: "mlp" }, 80e9)
    expect(lora.total).toBeLessThanOrEqual(80e9)
  })

  it("selects the lowest level of recomputation that fits", () => {
    const adapted = { ...cuda, lora: { rank: 32 } }
    const levels = [141e9, 80e9, 40e9].map((bytes) => memoryPlan(large, adapted, bytes).recompute)
    expect(levels[0]).toBe("none")
    expect(levels[1]).toBe("norms")
    expect(["mlp", "block"]).toContain(levels[2])
    expect(memoryPlan(large, adapted, 80e9).total).toBeLessThanOrEqual(80e9)
    expect(() => memoryPlan(large, { ...adapted, recompute: "none" }, 80e9)).toThrow(/It would fit with .*norms/)
  })

  it("includes the longest row if set, and otherwise computes its maximum", () => {
    const adapted = {
      ...cuda,
      lora: { rank: 32 },
      microBatchTokens: 4096,
      recompute: "norms",
      kvCacheBytes: 2 ** 28,
    } as const
    const usual = memoryPlan(large, adapted)
    const long = memoryPlan(large, { ...adapted, maxTrainTokens: 16384 })
    expect(long.activations / usual.activations).toBeCloseTo(4, 0)
    expect(long.maxTrainTokens).toBe(16384)
    expect(memoryPlan(large, { ...adapted, maxTrainTokens: 1000 })).toMatchObject({
      activations: usual.activations,
      maxTrainTokens: 4096,
    })
    // What fits without is not rejected, and tells what would: no more than the memory is for.
    const tight = memoryPlan(large, adapted, usual.total)
    expect(tight.total).toBeLessThanOrEqual(usual.total)
    expect(tight.maxTrainTokens).toBeGreaterThanOrEqual(4096)
    expect(tight.maxTrainTokens).toBeLessThan(16384)
    expect(() => memoryPlan(large, { ...adapted, maxTrainTokens: 16384 }, usual.total)).toThrow(/It would fit with /)
    expect(memoryPlan(large, { device: "cpu" }).maxTrainTokens).toBe(32768)
    expect(memoryPlan(large, { ...cuda, training: false }).maxTrainTokens).toBe(0)
  })

  it("of any micro-batch allocates nothing, and if rejected names one that fits", () => {
    // From 8192 on all grows in proportion, but for what is there once.
    const sizes = [8192, 16384, 100_000, 2 ** 27]
    for (const device of ["cpu", "cuda"] as const) {
      const bytes = sizes.map(
        (microBatchTokens) => memoryPlan(large, { device, microBatchTokens, recompute: "none" }).activations,
      )
      const perToken = [1, 2, 3].map((at) => (bytes[at]! - bytes[at - 1]!) / (sizes[at]! - sizes[at - 1]!))
      expect(perToken[1]! / perToken[0]!).toBeCloseTo(1, 3)
      expect(perToken[2]! / perToken[0]!).toBeCloseTo(1, 3)
    }
    const huge = { ...cuda, microBatchTokens: 1e9, lora: { rank: 32 } }
    expect(() => memoryPlan(large, huge, 80e9)).toThrow(/It would fit with .*microBatchTokens: 4096/)
    expect(() => memoryPlan(large, { ...cuda, microBatchTokens: 1e12 })).toThrow(/from 1 to 2147483647/)
  })

  it("of a model with a single position fails at once, with the fix", () => {
    const wanted = /maxPositions is 1; it must be at least 2/
    for (const device of ["cpu", "cuda"] as const)
      expect(() => memoryPlan({ ...large, maxPositions: 1 }, { device })).toThrow(wanted)
    expect(() => memoryPlan(large, { maxPositions: 1 })).toThrow(
      /maxPositions must be an integer from 2 to 2147483647, not 1/,
    )
    expect(memoryPlan(large, { ...cuda, maxPositions: 2 }).maxTrainTokens).toBe(2)
  })

  it("on the CPU includes packed weights, and rows longer than a micro-batch", () => {
    const cpu = { device: "cpu" } as const
    const plan = memoryPlan(large, cpu)
    const embedding = 152064 * 3584 // read row by row, so it is not packed; norms and biases are not either
    expect(plan.packed / (4 * (weights - embedding))).toBeCloseTo(1, 3)
    expect(memoryPlan(large, cuda).packed).toBe(0)
    expect(memoryPlan(large, { ...cpu, reference: true }).packed).toBeGreaterThan(1.8 * plan.packed)
    expect(plan.longestActivations).toBeGreaterThan(10 * plan.activations)
    expect(plan.text).toMatch(/packed weights 28\.\d GB, .*activations .* \(up to .* GB for rows of 32768 tokens\)/)
    const some = memoryPlan(large, cpu, plan.total)
    expect(some.available).toBe(plan.total)
    const rest = some.total - some.activations + some.longestActivations
    expect(rest).toBeLessThanOrEqual(plan.total)
  })

  it("on the CPU gives the cache half of the remaining memory, up to 64 sequences", () => {
    const cpu = { device: "cpu", maxPositions: 4096 } as const
    const token = 2 * 28 * 4 * 128 * 4
    const least = memoryPlan(large, { ...cpu, kvCacheBytes: 2 ** 28 }).total
    const page = 16 * token
    expect(memoryPlan(large, cpu).cache).toBe(64 * 4096 * token)
    expect(memoryPlan(large, cpu, least).cache).toBeLessThanOrEqual(2 ** 28)
    expect(Math.abs(memoryPlan(large, cpu, least + 8e9).cache - 2 ** 28 - 4e9)).toBeLessThanOrEqual(2 * page)
    expect(memoryPlan(large, { ...cpu, kvCacheBytes: 1e9 }, least + 8e9).cache).toBe(Math.floor(1e9 / page) * page)
  })

  it("limits the rows", async () => {
    const small = {
      ...large,
      hiddenSize: 32,
      intermediateSize: 32,
      layers: 1,
      heads: 1,
      keyValueHeads: 1,
      headSize: 32,
    }
    const config = { ...small, vocabularySize: 64, maxPositions: 1024 }
    const open = { device: "cpu", microBatchTokens: 64 } as const
    const row = stepSequence(new Int32Array(400), new Int32Array(40))
    const usual = await NativePolicy.create(config, new Random(0), open)
    expect(usual.memoryPlan.maxTrainTokens).toBe(1024)
    const wanted = await usual.forwardBackward([row], crossEntropy)
    const enough = await NativePolicy.create(config, new Random(0), { ...open, maxTrainTokens: 440 })
    expect(await enough.forwardBackward([row], crossEntropy)).toEqual(wanted)
    expect(enough.memoryPlan.activations).toBeGreaterThan(4 * usual.memoryPlan.activations)
    const less = await NativePolicy.create(config, new Random(0), { ...open, maxTrainTokens: 300 })
    for (const call of [() => less.forwardBackward([row], crossEntropy), () => less.logProbs([row])]) {
      await expect(call()).rejects.toMatchObject({
        code: "BAD_ARGUMENT",
        message: expect.stringMatching(
          /A row has 440 tokens.* memory to train 300 at once: open it with maxTrainTokens: 440/,
        ),
      })
    }
    await Promise.all([usual, enough, less].map((policy) => policy.dispose()))
  })

  it("rejects invalid options like a policy", () => {
    expect(() => memoryPlan(large, { microBatchTokens: 0 })).toThrow(
      /microBatchTokens must be an integer from 1 to 2147483647, not 0/,
    )
    expect(() => memoryPlan({ ...large, heads: 3 })).toThrow(/multiple of keyValueHeads/)
  })

  it("is checked before anything is allocated", async () => {
    const huge = {
      ...large,
      hiddenSize: 65536,
      intermediateSize: 262144,
      layers: 200,
      heads: 512,
      maxPositions: 2 ** 30,
    }
    const before = process.memoryUsage().rss
    await expect(NativePolicy.create(huge, new Random(0))).rejects.toMatchObject({ code: "OUT_OF_MEMORY" })
    expect(process.memoryUsage().rss - before).toBeLessThan(200e6)
  })
})
