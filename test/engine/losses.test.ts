import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import type { ClippedSurrogate, LinearLoss, NativeLoss } from "../../src/engine/engine.ts"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { type Sequence, sampledTokens } from "../../src/engine/sequence.ts"
import { policyLoss, type SurrogateInput } from "../../src/kernels/policy-loss.ts"
import { tokenLogProbs } from "../../src/kernels/token-log-probs.ts"
import { Random } from "../../src/util/random.ts"
import { byRow } from "./by-row.ts"
import {
  credited,
  crossEntropy,
  gradients,
  join,
  logProbsOf,
  modelPath,
  partsOf,
  readExpected,
  relativeError,
  rolloutRows,
  surrogate,
  weightNames,
} from "./fixtures.ts"

const names = weightNames(readExpected("qwen3"))
let policy: NativePolicy
let rows: Sequence[]

beforeAll(async () => {
  policy = await NativePolicy.open(modelPath("qwen3"))
  rows = await rolloutRows(policy, new Random(31))
})
afterAll(() => policy.dispose())
beforeEach(() => policy.clearGradients())

async function run(loss: NativeLoss | LinearLoss, of: readonly Sequence[] = rows) {
  await policy.clearGradients()
  const report = await policy.forwardBackward(of, loss)
  return { report, gradients: await gradients(policy, names) }
}

function expectSame(found: Map<string, Float32Array>, wanted: Map<string, Float32Array>, bound = 1e-5): void {
  for (const name of names) expect(relativeError(found.get(name)!, wanted.get(name)!), name).toBeLessThan(bound)
}

/** The rows as the standalone kernel takes them. */
function surrogateInput(logProbs: readonly Float32Array[]): SurrogateInput {
  const segments = rows.map((row) => row.segments[0]!)
  return {
    logProbs: join(logProbs),
    oldLogProbs: join(segments.map((segment) => segment.logProbs!)),
    referenceLogProbs: join(segments.map((segment) => segment.referenceLogProbs!)),
    advantages: join(segments.map((segment) => new Float32Array(segment.length).fill(segment.advantage as number))),
    mask: new Float32Array(sampledTokens(rows)).fill(1),
    lengths: Int32Array.from(segments, (segment) => segment.length),
  }
}

/** What the kernel says of the log-probabilities, and the gradient of that. */
async function throughKernel({ entropyWeight: _, ...options }: Partial<ClippedSurrogate>) {
  const input = surrogateInput(await logProbsOf(policy, rows))
  const { loss, gradient } = policyLoss(input, options)
  return { loss, ...(await run({ kind: "linear", coefficients: gradient })) }
}

describe("the built-in policy loss", () => {
  const base = { clipLow: 0.2, clipHigh: 0.28, klWeight: 0.05 } as const
  const cases: Partial<ClippedSurrogate>[] = [
    {},
    base,
    { ...base, klEstimator: "k1" },
    { ...base, klEstimator: "k2" },
    { ...base, klEstimator: "abs" },
    { ...base, klEstimator: "k1+" },
    { ...base, klEstimator: "k3+", importanceSamplingLevel: "sequence" },
    { ...base, clipDual: 1.8 },
    { ...base, clipDual: Number.POSITIVE_INFINITY },
    { ...base, aggregation: "sequence-mean-token-sum" },
    { ...base, aggregation: "sequence-mean-token-mean" },
    { ...base, aggregation: "token-sum" },
    { ...base, aggregation: "sequence-mean-fixed-length", fixedLength: 12 },
    { ...base, aggregation: "sequence-mean-fixed-length", fixedLength: 12, importanceSamplingLevel: "sequence" },
    { ...base, importanceSamplingLevel: "sequence" },
    { clipLow: 3e-4, clipHigh: 4e-4, importanceSamplingLevel: "sequence", aggregation: "sequence-mean-token-mean" },
  ]

  it.each(cases)("agrees with the standalone kernel: %j", async (options) => {
    const found = await run(surrogate(options))
    const wanted = await throughKernel(options)
    expect(found.report.loss).toBeCloseTo(wanted.loss, 5)
    expectSame(found.gradients, wanted.gradients)
    const kernel = policyLoss(surrogateInput(await logProbsOf(policy, rows)), {
      ...options,
      aggregation: "token-mean",
      fixedLength: undefined,
    })
    const { tokens, metrics } = found.report
    expect(tokens).toBe(61)
    expect(metrics["policy/entropy"]).toBeCloseTo(wanted.report.metrics["policy/entropy"]!, 5)
    expect(metrics["policy/clip-fraction"]).toBeCloseTo(kernel.clipFraction, 6)
    expect(metrics["policy/dual-clip-fraction"]).toBeCloseTo(kernel.dualClipFraction, 6)
    expect(metrics["policy/ratio"]).toBeCloseTo(kernel.ratio, 4)
    expect(metrics["policy/kl"]).toBeCloseTo(kernel.policyKl, 5)
    expect(metrics["loss/kl"]).toBeCloseTo(kernel.kl, 5)
  })

  it("clips some gradients of these tests, but not all", async () => {
    const { report } = await run(surrogate({ ...base, clipDual: 1.8 }))
    for (const [name, least] of [
      ["policy/clip-fraction", 0.2],
      ["policy/dual-clip-fraction", 0.01],
    ] as const) {
      expect(report.metrics[name]).toBeGreaterThan(least)
      expect(report.metrics[name]).toBeLessThan(0.8)
    }
  })

  it("returns the log-probability of every token, before the weights change", async () => {
    const wanted = (await logProbsOf(policy, rows)).flatMap((values) => [...values])
    const losses = [
      surrogate(base),
      surrogate({ ...base, importanceSamplingLevel: "sequence" }),
      crossEntropy,
      { kind: "linear", coefficients: new Float32Array(61).fill(0.1) } as const,
    ]
    for (const loss of losses) {
      const { logProbs } = (await run(loss)).report
      expect(logProbs).toHaveLength(61)
      for (const [t, value] of wanted.entries()) expect(logProbs![t]).toBeCloseTo(value, 5)
    }
  })

  it("has no gradient if every advantage is 0", async () => {
    const still = rows.map((row) => credited(row, { advantage: 0 }))
    const found = await run(surrogate(), still)
    expect(Math.abs(found.report.loss)).toBe(0)
    for (const gradient of found.gradients.values()) expect(gradient.every((value) => value === 0)).toBe(true)
  })

  it("uses defaults for undefined options", async () => {
    const options = { temperature: undefined, unit: undefined }
    expect((await run(surrogate(options))).report).toEqual((await run(surrogate())).report)
  })
})

describe("the entropy bonus", () => {
  const entropyWeight = 0.3

  it.each<Partial<ClippedSurrogate>>([
    {},
    { importanceSamplingLevel: "sequence" },
    { aggregation: "sequence-mean-token-sum" },
    { aggregation: "sequence-mean-token-mean" },
    { aggregation: "sequence-mean-token-mean", importanceSamplingLevel: "sequence" },
  ])("adds the same gradient to any policy loss of the same aggregation: %j", async (options) => {
    const plain = await run(surrogate(options))
    const bonus = await run(surrogate({ ...options, entropyWeight }))
    const still = rows.map((row) => credited(row, { advantage: 0 }))
    const alone = await run(surrogate({ ...options, importanceSamplingLevel: "token", entropyWeight }), still)
    const sum = new Map(
      names.map((name) => [name, plain.gradients.get(name)!.map((g, i) => g + alone.gradients.get(name)![i]!)]),
    )
    expectSame(bonus.gradients, sum)
    expect(bonus.report.loss).toBeCloseTo(plain.report.loss + alone.report.loss, 5)
    expect(bonus.report.metrics["policy/entropy"]).toBeCloseTo(plain.report.metrics["policy/entropy"]!, 6)
  })

  it("equals the weight times the mean entropy", async () => {
    const still = rows.map((row) => credited(row, { advantage: 0 }))
    const { report } = await run(surrogate({ entropyWeight }), still)
    expect(report.loss).toBeCloseTo(-entropyWeight * report.metrics["policy/entropy"]!, 6)
  })
})

describe("a loss evaluated outside of the engine", () => {
  it("receives log-probabilities at its temperature, and entropies", async () => {
    const wanted = await logProbsOf(policy, rows, { temperature: 0.6 })
    const found = byRow(rows, await policy.logProbs(rows, { temperature: 0.6, needs: ["entropy"] }))
    expect(found.map(({ logProbs }) => logProbs)).toEqual(wanted)
    for (const [index, row] of rows.entries()) {
      const { prompt, completion } = partsOf(row)
      const [from, vocabulary] = [prompt.length - 1, policy.vocabularySize]
      const logits = (await policy.logits(row.tokens)).slice(from * vocabulary, (from + completion.length) * vocabulary)
      const { entropies } = tokenLogProbs(logits, vocabulary, completion, { temperature: 0.6 })
      expect(relativeError(found[index]!.entropies!, entropies)).toBeLessThan(1e-5)
    }
  })

  it("with the coefficients of cross-entropy has its gradient", async () => {
    const clone = await run(crossEntropy)
    const tokens = sampledTokens(rows)
    const mean = await run({ kind: "linear", coefficients: new Float32Array(tokens).fill(-1 / tokens) })
    expect(mean.report).toMatchObject({ loss: 0, tokens })
    expect(clone.report.loss).toBeCloseTo(-join(await logProbsOf(policy, rows)).reduce((a, b) => a + b, 0) / tokens, 5)
    expectSame(clone.gradients, mean.gradients)
  })

  it.each([0.3, -0.3])(
    "with the coefficients of an entropy term of weight %d has its gradient",
    async (entropyWeight) => {
      const still = rows.map((row) => credited(row, { advantage: 0 }))
      const bonus = await run(surrogate({ entropyWeight, temperature: 0.7 }), still)
      const tokens = sampledTokens(rows)
      const found = await run({
        kind: "linear",
        temperature: 0.7,
        coefficients: new Float32Array(tokens),
        entropyCoefficients: new Float32Array(tokens).fill(-entropyWeight / tokens),
      })
      expectSame(found.gradients, bonus.gradients)
    },
  )

  it("adds both coefficients of every token", async () => {
    const random = new Random(5)
    const [coefficients, entropyCoefficients] = [0, 1].map(() =>
      Float32Array.from({ length: sampledTokens(rows) }, () => random.uniform() - 0.5),
    ) as [Float32Array, Float32Array]
    const both = await run({ kind: "linear", coefficients, entropyCoefficients })
    const none = new Float32Array(coefficients.length)
    const one = await run({ kind: "linear", coefficients })
    const other = await run({ kind: "linear", coefficients: none, entropyCoefficients })
    const sum = new Map(
      names.map((name) => [name, one.gradients.get(name)!.map((g, i) => g + other.gradients.get(name)![i]!)]),
    )
    expectSame(both.gradients, sum)
  })

  it("without an entropy term has a bit-identical gradient", async () => {
    const coefficients = Float32Array.from({ length: sampledTokens(rows) }, (_, i) => Math.sin(i))
    const [one, other] = [
      await run({ kind: "linear", coefficients }),
      await run({ kind: "linear", coefficients, entropyCoefficients: undefined }),
    ]
    expect(one).toEqual(other)
  })

  it.each<[string, object, string, RegExp]>([
    ["too few coefficients", { coefficients: new Float32Array(1) }, "BAD_ARGUMENT", /one number for each of the 61/],
    ["none", {}, "BAD_ARGUMENT", /coefficients must be a Float32Array/],
    ["a coefficient of NaN", { coefficients: new Float32Array(61).fill(NaN) }, "NON_FINITE", /coefficients contain/],
    [
      "too few for the entropies",
      { coefficients: new Float32Array(61), entropyCoefficients: new Float32Array(62) },
      "BAD_ARGUMENT",
      /entropyCoefficients must be/,
    ],
    [
      "an infinite one for an entropy",
      { coefficients: new Float32Array(61), entropyCoefficients: new Float32Array(61).fill(Infinity) },
      "NON_FINITE",
      /entropyCoefficients contain/,
    ],
  ])("is rejected with %s", async (_, wrong, code, message) => {
    const loss = { kind: "linear", ...wrong } as LinearLoss
    await expect(policy.forwardBackward(rows, loss)).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    })
    for (const gradient of (await gradients(policy, names)).values()) expect(gradient.every((g) => g === 0)).toBe(true)
  })
})

describe("the reference policy", () => {
  const step = { learningRate: 0.01 }
  let trained: NativePolicy
  beforeAll(async () => {
    trained = await NativePolicy.open(modelPath("qwen3"))
  })
  afterAll(() => trained.dispose())

  it("must be frozen before use", async () => {
    await expect(logProbsOf(trained, rows, { model: "reference" })).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: expect.stringContaining("reference.freeze()"),
    })
  })

  it("stays frozen while the policy changes, until it is frozen again", async () => {
    const first = await logProbsOf(trained, rows)
    await trained.reference.freeze()
    expect(await logProbsOf(trained, rows, { model: "reference" })).toEqual(first)
    await trained.forwardBackward(rows, crossEntropy)
    await trained.optimizerStep(step)
    const second = await logProbsOf(trained, rows)
    expect(second).not.toEqual(first)
    expect(await logProbsOf(trained, rows, { model: "reference" })).toEqual(first)
    await trained.reference.freeze()
    expect(await logProbsOf(trained, rows, { model: "reference" })).toEqual(second)
  })

  it("is the reference of the KL term, for each estimator", async () => {
    await trained.reference.freeze()
    const reference = await logProbsOf(trained, rows, { model: "reference" })
    await trained.forwardBackward(rows, crossEntropy)
    await trained.optimizerStep(step)
    const current = await logProbsOf(trained, rows)
    const withReference = rows.map((row, index) =>
      credited(row, { advantage: 0, referenceLogProbs: reference[index]! }),
    )
    const differences = current.flatMap((values, row) => [...values].map((value, i) => reference[row]![i]! - value))
    const mean = (estimate: (d: number) => number) =>
      differences.reduce((sum, d) => sum + estimate(d), 0) / differences.length
    const [k1, k3] = [mean((d) => -d), mean((d) => Math.exp(d) - d - 1)]
    const wanted = { k1, k2: mean((d) => (d * d) / 2), k3, abs: mean(Math.abs), "k1+": k1, "k3+": k3 }
    expect(wanted.k3).toBeGreaterThan(1e-3)
    for (const klEstimator of Object.keys(wanted) as (keyof typeof wanted)[]) {
      const weighed = surrogate({ klWeight: 0.5, klEstimator })
      const report = await trained.forwardBackward(withReference, weighed)
      expect(report.metrics["loss/kl"]).toBeCloseTo(wanted[klEstimator], 5)
      expect(report.loss).toBeCloseTo(0.5 * wanted[klEstimator], 5)
      // Without a weight it is reported all the same.
      const watched = await trained.forwardBackward(withReference, { ...weighed, klWeight: 0 })
      expect(watched.metrics["loss/kl"]).toBeCloseTo(wanted[klEstimator], 5)
      expect(Math.abs(watched.loss)).toBe(0)
    }
  })
})
