import { createHash } from "node:crypto"
import { describe, expect, it } from "vitest"
import type { LinearLoss, NativeLoss } from "../../src/engine/engine.ts"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import type { NativePolicyOptions } from "../../src/engine/native/options.ts"
import type { Sequence } from "../../src/engine/sequence.ts"
import type { NativeEngine } from "../../src/native/native.ts"
import { GigpoError } from "../../src/util/errors.ts"
import { Random } from "../../src/util/random.ts"
import {
  crossEntropy,
  modelPath,
  randomTokens,
  readExpected,
  relativeError,
  rolloutRows,
  rowsForCritic,
  surrogate,
  weightNames,
} from "./fixtures.ts"
import { withReplicas } from "./replicas.ts"

// Replicas on the CPU: the division of batches and requests, and the sums, are those of several GPUs.

const names = weightNames(readExpected("qwen3"))
const step = { learningRate: 1e-3 }

/** Does work with a policy of one engine, or of several replicas. */
async function using<T>(
  count: number,
  options: NativePolicyOptions,
  work: (policy: NativePolicy, engines: NativeEngine[]) => Promise<T>,
  change: (engine: NativeEngine, rank: number) => void = () => {},
): Promise<T> {
  const engines: NativeEngine[] = []
  const open = () => NativePolicy.open(modelPath("qwen3"), { device: "cpu", threads: 1, ...options })
  const remembered = (engine: NativeEngine, rank: number) => {
    engines.push(engine)
    change(engine, rank)
  }
  await using policy = count === 1 ? await open() : await withReplicas(count, open, remembered)
  return await work(policy, engines)
}

/** Rows of a rollout, and two that begin like another one. */
async function rowsOf(policy: NativePolicy): Promise<Sequence[]> {
  const rows = await rolloutRows(policy, new Random(3))
  return [...rows, { ...rows[5]!, tokens: rows[5]!.tokens.with(-1, 4) }, rows[3]!]
}

/** Digest of the trained weights. */
async function bitsOf(engine: NativeEngine): Promise<string> {
  const bits = createHash("sha256")
  const parameters = engine.adapterParameters.length > 0 ? engine.adapterParameters : engine.parameters
  const buffer = engine.adapterParameters.length > 0 ? "adapter" : "weights"
  for (const [index, { shape }] of parameters.entries())
    bits.update(
      await engine.read(
        buffer,
        index,
        0,
        shape.reduce((a, b) => a * b, 1),
      ).promise,
    )
  return bits.digest("hex")
}

const linear = (rows: readonly Sequence[]): LinearLoss => {
  const tokens = rows.reduce((sum, { segments }) => sum + segments[0]!.length, 0)
  return { kind: "linear", coefficients: Float32Array.from({ length: tokens }, (_, i) => Math.sin(i) / tokens) }
}

const cases: [string, (rows: readonly Sequence[]) => NativeLoss | LinearLoss, NativePolicyOptions][] = [
  ["cross-entropy", () => crossEntropy, {}],
  ["the clipped surrogate", () => surrogate({ klWeight: 0.1, entropyWeight: 0.01 }), {}],
  ["means over sequences", () => surrogate({ aggregation: "sequence-mean-token-mean" }), { microBatchTokens: 20 }],
  ["skipped rows", () => surrogate({ skipZeroAdvantage: true }), {}],
  ["one ratio per sequence", () => surrogate({ importanceSamplingLevel: "sequence", klWeight: 0.1 }), {}],
  ["a loss by its gradient", linear, {}],
  ["an adapter", () => surrogate(), { lora: { rank: 4 } }],
  ["separate sequences and bf16 moments", () => surrogate(), { sharePrefixes: false, optimizerPrecision: "bfloat16" }],
]

describe.each(cases)("ten steps with %s", (_, lossOf, options) => {
  const train = (count: number) =>
    using(count, options, async (policy, engines) => {
      const rows = await rowsOf(policy)
      const loss = lossOf(rows)
      const reports = []
      let gradient: Float32Array = new Float32Array()
      for (let i = 0; i < 10; i++) {
        const report = await policy.forwardBackward(rows, loss)
        if (i === 0 && !options.lora) gradient = await policy.tensor(names[0]!, "gradients")
        const { gradientNorm } = await policy.optimizerStep(step)
        reports.push({ ...report, gradientNorm })
      }
      const bits = await Promise.all(engines.map(bitsOf))
      return { reports, gradient, bits }
    })

  it("gives the numbers of one engine for two and four replicas, and the same bits for the same count", async () => {
    const one = await train(1)
    for (const count of [2, 4]) {
      const found = await train(count)
      for (const [i, report] of found.reports.entries()) {
        const wanted = one.reports[i]!
        expect(Math.abs(report.loss - wanted.loss), `loss ${i}`).toBeLessThan(1e-6)
        expect(report.tokens).toBe(wanted.tokens)
        expect(report.computedTokens! + report.reusedTokens!).toBe(wanted.computedTokens! + wanted.reusedTokens!)
        expect(Math.abs(report.gradientNorm - wanted.gradientNorm)).toBeLessThanOrEqual(1e-4 * wanted.gradientNorm)
        for (const [name, value] of Object.entries(wanted.metrics))
          expect(Math.abs(report.metrics[name]! - value), name).toBeLessThan(1e-5)
        for (const [token, value] of wanted.logProbs!.entries())
          if (Number.isNaN(value)) expect(report.logProbs![token]).toBeNaN()
          else expect(Math.abs(report.logProbs![token]! - value)).toBeLessThan(1e-4)
      }
      if (one.gradient.length > 0) expect(relativeError(found.gradient, one.gradient)).toBeLessThan(1e-5)
      expect(found.bits).toEqual(Array(count).fill(found.bits[0]))
      if (count === 2) expect((await train(2)).bits).toEqual(found.bits)
    }
  })
})

describe("replicas", () => {
  it("score the tokens as one engine does", async () => {
    const scores = (count: number) =>
      using(count, { reference: true }, async (policy) => {
        const rows = await rowsOf(policy)
        await policy.reference.freeze()
        await policy.forwardBackward(rows, crossEntropy)
        await policy.optimizerStep(step)
        return await policy.logProbs(rows, { needs: ["entropy", "hellinger", "top"], top: 3 })
      })
    const [wanted, found] = [await scores(1), await scores(3)]
    expect(relativeError(found.logProbs, wanted.logProbs)).toBeLessThan(1e-5)
    expect(relativeError(found.entropies!, wanted.entropies!)).toBeLessThan(1e-5)
    expect(relativeError(found.hellingers!, wanted.hellingers!)).toBeLessThan(1e-3)
    expect(found.top!.tokens).toEqual(wanted.top!.tokens)
    expect(relativeError(found.top!.logProbs, wanted.top!.logProbs)).toBeLessThan(1e-5)
  })

  it("train a single sequence, which all but one wait for", async () => {
    const train = (count: number) =>
      using(count, {}, async (policy) => {
        const [row] = await rowsOf(policy)
        const { loss, tokens, logProbs } = await policy.forwardBackward([row!], surrogate())
        const { gradientNorm } = await policy.optimizerStep(step)
        return { loss, tokens, logProbs, gradientNorm }
      })
    expect(await train(4)).toEqual(await train(1))
  })

  it("train a critic as one engine does", async () => {
    const train = (count: number) =>
      using(count, {}, async (policy) => {
        const rows = await rowsForCritic(policy)
        const critic = await policy.critic()
        const found: number[] = []
        for (let i = 0; i < 10; i++) {
          const { loss, tokens, metrics } = await critic.forwardBackward(rows, { kind: "clipped-value", clip: 0.3 })
          found.push(loss, tokens, ...Object.values(metrics))
          await critic.optimizerStep(step)
        }
        return [...found, ...(await critic.predict(rows))]
      })
    const wanted = await train(1)
    for (const count of [2, 4]) expect(relativeError(await train(count), wanted)).toBeLessThan(1e-6)
  })

  it("sample the tokens of one engine, and keep requests with the same beginning together", async () => {
    const random = new Random(5)
    const prompts = Array.from({ length: 4 }, () => randomTokens(40, random))
    const sample = (count: number) =>
      using(count, { kvCacheBytes: 2 ** 20 }, async (policy, engines) => {
        const requests = prompts.flatMap((prompt) => Array.from({ length: 3 }, () => prompt))
        const completions = await Promise.all(
          requests.map((prompt, i) => policy.sample({ prompt, maxTokens: 8, stopTokens: [], key: [1, i] })),
        )
        const sampled = engines.map(({ statistics }) => statistics.sampledTokens)
        return { tokens: completions.map(({ tokens }) => tokens), sampled, statistics: policy.statistics }
      })
    const [one, two] = [await sample(1), await sample(2)]
    expect(two.tokens).toEqual(one.tokens)
    expect(two.sampled).toEqual([48, 48])
    expect(two.statistics).toEqual(one.statistics)
  })

  it("save and load weights and moments", async () => {
    await using(2, {}, async (policy, engines) => {
      const rows = await rowsOf(policy)
      await policy.forwardBackward(rows, crossEntropy)
      await policy.optimizerStep(step)
      expect(policy.optimizerSteps).toBe(1)
      expect(engines.map(({ steps }) => steps)).toEqual([1, 1])
      await policy.load(modelPath("qwen3"))
      const [first, second] = await Promise.all(engines.map(bitsOf))
      expect(second).toEqual(first)
    })
  })

  it("drop all gradients after an abort", async () => {
    await using(2, {}, async (policy) => {
      const rows = await rowsOf(policy)
      await policy.forwardBackward(rows, crossEntropy)
      const stop = new AbortController()
      const stopped = policy.forwardBackward(Array(200).fill(rows).flat(), crossEntropy, { signal: stop.signal })
      setTimeout(() => stop.abort(), 5)
      await expect(stopped).rejects.toThrow()
      expect((await policy.tensor(names[0]!, "gradients")).every((value) => value === 0)).toBe(true)
      await policy.forwardBackward(rows, crossEntropy)
      await policy.optimizerStep(step)
    })
  })

  it("reject a bad batch without an effect", async () => {
    await using(2, {}, async (policy) => {
      const rows = await rowsOf(policy)
      await policy.forwardBackward(rows, crossEntropy)
      const before = await policy.tensor(names[0]!, "gradients")
      const bad = { ...rows[0]!, tokens: rows[0]!.tokens.with(0, 9999) }
      await expect(policy.forwardBackward([bad], crossEntropy)).rejects.toMatchObject({ code: "BAD_ARGUMENT" })
      expect(await policy.tensor(names[0]!, "gradients")).toEqual(before)
    })
  })

  const lost = () => Promise.reject(new GigpoError("DEVICE_LOST", "an illegal memory access"))

  it.each(["forwardBackward", "clearGradients", "freezeReference"] as const)(
    "fail with the name of the device if one is lost in %s, and then in every call",
    async (name) => {
      const lose = (engine: NativeEngine, rank: number) => {
        // A lost device does not clear its gradients either.
        for (const call of new Set([name, "clearGradients"]))
          if (rank === 1) Object.defineProperty(engine, call, { value: () => ({ promise: lost(), cancel() {} }) })
      }
      const work = async (policy: NativePolicy) => {
        const rows = await rowsOf(policy)
        const calls = {
          forwardBackward: () => policy.forwardBackward(rows, crossEntropy),
          clearGradients: () => policy.clearGradients(),
          freezeReference: () => policy.reference.freeze(),
        }
        const error = { code: "DEVICE_LOST", message: "cpu:1: an illegal memory access" }
        await expect(calls[name]()).rejects.toMatchObject(error)
        await expect(policy.optimizerStep(step)).rejects.toMatchObject(error)
        await expect(policy.tensor(names[0]!)).rejects.toMatchObject(error)
        const request = { prompt: Int32Array.of(1), maxTokens: 1, stopTokens: [], key: [1, 2] } as const
        await expect(policy.sample(request)).rejects.toMatchObject(error)
      }
      await using(2, {}, work, lose)
    },
  )

  it("do not wait for a replica that cannot open, or is gone", async () => {
    const tooSmall = using(
      2,
      {},
      async () => {},
      (engine, rank) => void (rank === 1 && engine.dispose()),
    )
    await expect(tooSmall).rejects.toMatchObject({ code: expect.stringMatching(/DISPOSED|ABORTED/) })
    await using(2, {}, async (policy, engines) => {
      await policy.forwardBackward(await rowsOf(policy), crossEntropy)
      const waiting = policy.optimizerStep(step).catch(() => {}) // may fail before the replica is gone
      await engines[1]!.dispose()
      await waiting
      await expect(policy.optimizerStep(step)).rejects.toThrow(GigpoError)
    })
  })
})
