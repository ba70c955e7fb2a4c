import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import type { CustomLoss, LossSpec, PolicyLossOptions, Row } from "../../src/engine/engine.ts"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { clippedSurrogate, type SurrogateInput } from "../../src/kernels.ts"
import { Random } from "../../src/random.ts"
import { gradients, modelPath, readExpected, relativeError, rolloutRows, weightNames } from "./fixtures.ts"

const names = weightNames(readExpected("qwen3"))
let policy: NativePolicy
let rows: Required<Row>[]

beforeAll(async () => {
  policy = await NativePolicy.open(modelPath("qwen3"))
  rows = await rolloutRows(policy, new Random(31))
})
afterAll(() => policy.dispose())
beforeEach(() => policy.clearGradients())

async function run(loss: LossSpec, of: readonly Row[] = rows) {
  await policy.clearGradients()
  const report = await policy.forwardBackward(of, loss)
  return { report, gradients: await gradients(policy, names) }
}

function expectSame(found: Map<string, Float32Array>, wanted: Map<string, Float32Array>, bound = 1e-5): void {
  for (const name of names) expect(relativeError(found.get(name)!, wanted.get(name)!), name).toBeLessThan(bound)
}

/** The rows as the standalone kernel takes them. */
function surrogateInput(logProbs: readonly Float32Array[]): SurrogateInput {
  const join = (parts: readonly ArrayLike<number>[]) => Float32Array.from(parts.flatMap((part) => Array.from(part)))
  return {
    logProbs: join(logProbs),
    oldLogProbs: join(rows.map((row) => row.logProbs)),
    referenceLogProbs: join(rows.map((row) => row.referenceLogProbs)),
    advantages: join(rows.map((row) => row.logProbs.map(() => row.advantage))),
    mask: join(rows.map((row) => row.logProbs.map(() => 1))),
    rows: Int32Array.from(rows, (row) => row.reply.length),
  }
}

function split(flat: Float32Array): Float32Array[] {
  let at = 0
  return rows.map(({ reply }) => {
    at += reply.length
    return flat.slice(at - reply.length, at)
  })
}

/** What the kernel says of the log-probabilities, as a custom loss. */
function throughKernel(options: PolicyLossOptions): LossSpec {
  const loss = (logProbs: readonly Float32Array[]): CustomLoss => {
    const { entropyWeight, ...rest } = options
    const found = clippedSurrogate(surrogateInput(logProbs), rest)
    return { loss: found.loss, gradient: split(found.gradient) }
  }
  return { kind: "custom", loss }
}

describe("the built-in policy loss", () => {
  const base = { clipLow: 0.2, clipHigh: 0.28, klWeight: 0.05 } as const
  const cases: PolicyLossOptions[] = [
    {},
    base,
    { ...base, klEstimator: "k1" },
    { ...base, klEstimator: "k2" },
    { ...base, clipDual: 1.8 },
    { ...base, clipDual: Number.POSITIVE_INFINITY },
    { ...base, aggregation: "sequence-mean-token-sum" },
    { ...base, aggregation: "sequence-mean-token-mean" },
    { ...base, ratio: "sequence" },
    { clipLow: 3e-4, clipHigh: 4e-4, ratio: "sequence", aggregation: "sequence-mean-token-mean" },
  ]

  it.each(cases)("agrees with the standalone kernel: %j", async (options) => {
    const found = await run({ kind: "policy", ...options })
    const wanted = await run(throughKernel(options))
    expect(found.report.loss).toBeCloseTo(wanted.report.loss, 5)
    expectSame(found.gradients, wanted.gradients)
    const kernel = clippedSurrogate(surrogateInput(await policy.logProbs(rows, "current")), {
      ...options,
      aggregation: "token-mean",
    })
    expect(found.report).toMatchObject({ tokens: 61, entropy: expect.closeTo(wanted.report.entropy, 5) })
    expect(found.report.clipFraction).toBeCloseTo(kernel.clipFraction + kernel.dualClipFraction, 6)
    expect(found.report.ratio).toBeCloseTo(kernel.ratio, 4)
    expect(found.report.policyKl).toBeCloseTo(kernel.policyKl, 5)
    expect(found.report.kl).toBeCloseTo(kernel.kl, 5)
  })

  it("cuts some gradients, in these tests, and lets others pass", async () => {
    const { report } = await run({ kind: "policy", ...base })
    expect(report.clipFraction).toBeGreaterThan(0.2)
    expect(report.clipFraction).toBeLessThan(0.8)
  })

  it("has no gradient where every advantage is 0", async () => {
    const still = rows.map((row) => ({ ...row, advantage: 0 }))
    const found = await run({ kind: "policy" }, still)
    expect(Math.abs(found.report.loss)).toBe(0)
    for (const gradient of found.gradients.values()) expect(gradient.every((value) => value === 0)).toBe(true)
  })

  it("takes the options' defaults where they are undefined", async () => {
    const options = { clipLow: undefined, clipDual: undefined, aggregation: undefined } as unknown as PolicyLossOptions
    expect((await run({ kind: "policy", ...options })).report).toEqual((await run({ kind: "policy" })).report)
  })
})

describe("the entropy bonus", () => {
  const entropyWeight = 0.3

  it.each<PolicyLossOptions>([
    {},
    { ratio: "sequence" },
    { aggregation: "sequence-mean-token-sum" },
    { aggregation: "sequence-mean-token-mean" },
    { aggregation: "sequence-mean-token-mean", ratio: "sequence" },
  ])("adds the same gradient to any policy loss of the same aggregation: %j", async (options) => {
    const plain = await run({ kind: "policy", ...options })
    const bonus = await run({ kind: "policy", ...options, entropyWeight })
    const still = rows.map((row) => ({ ...row, advantage: 0 }))
    const alone = await run({ kind: "policy", ...options, ratio: "token", entropyWeight }, still)
    const sum = new Map(
      names.map((name) => [name, plain.gradients.get(name)!.map((g, i) => g + alone.gradients.get(name)![i]!)]),
    )
    expectSame(bonus.gradients, sum)
    expect(bonus.report.loss).toBeCloseTo(plain.report.loss + alone.report.loss, 5)
    expect(bonus.report.entropy).toBeCloseTo(plain.report.entropy, 6)
  })

  it("is the weight times the mean entropy", async () => {
    const still = rows.map((row) => ({ ...row, advantage: 0 }))
    const { report } = await run({ kind: "policy", entropyWeight }, still)
    expect(report.loss).toBeCloseTo(-entropyWeight * report.entropy, 6)
  })
})

describe("a custom loss", () => {
  it("is given the log-probabilities at its temperature and the rows", async () => {
    const wanted = await policy.logProbs(rows, "current", { temperature: 0.6 })
    const loss = (logProbs: readonly Float32Array[], given: readonly Row[]): CustomLoss => {
      expect(logProbs).toEqual(wanted)
      expect(given).toBe(rows)
      return { loss: 0, gradient: rows.map((row) => row.logProbs.map(() => 0)) }
    }
    await policy.forwardBackward(rows, { kind: "custom", temperature: 0.6, loss })
  })

  it("that says what cloning says has cloning's gradient", async () => {
    const clone = await run({ kind: "clone" })
    const mean = await run({
      kind: "custom",
      loss: (logProbs) => {
        const tokens = logProbs.reduce((sum, { length }) => sum + length, 0)
        return {
          loss: -logProbs.reduce((sum, values) => sum + values.reduce((a, b) => a + b, 0), 0) / tokens,
          gradient: logProbs.map((values) => values.map(() => -1 / tokens)),
        }
      },
    })
    expect(clone.report.loss).toBeCloseTo(mean.report.loss, 5)
    expectSame(clone.gradients, mean.gradients)
  })

  it.each<[string, () => CustomLoss, string]>([
    ["too few rows", () => ({ loss: 0, gradient: [] }), "BAD_ARGUMENT"],
    ["too short a row", () => ({ loss: 0, gradient: rows.map(() => new Float32Array(1)) }), "BAD_ARGUMENT"],
    ["a gradient of NaN", () => ({ loss: 0, gradient: rows.map((row) => row.logProbs.map(() => NaN)) }), "NON_FINITE"],
    ["a loss of NaN", () => ({ loss: NaN, gradient: rows.map((row) => row.logProbs.map(() => 0)) }), "NON_FINITE"],
  ])("is refused when it returns %s", async (_, loss, code) => {
    await expect(policy.forwardBackward(rows, { kind: "custom", loss })).rejects.toMatchObject({ code })
    for (const gradient of (await gradients(policy, names)).values()) expect(gradient.every((g) => g === 0)).toBe(true)
  })

  it("may throw, and what it throws comes out", async () => {
    const failure = new Error("of its own")
    const loss = () => {
      throw failure
    }
    await expect(policy.forwardBackward(rows, { kind: "custom", loss })).rejects.toBe(failure)
  })
})

describe("the reference policy", () => {
  const step = { learningRate: 0.01 }
  let trained: NativePolicy
  beforeAll(async () => {
    trained = await NativePolicy.open(modelPath("qwen3"))
  })
  afterAll(() => trained.dispose())

  it("must be frozen before it is asked", async () => {
    await expect(trained.logProbs(rows, "reference")).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: expect.stringContaining("freezeReference()"),
    })
  })

  it("stays as it was frozen while the policy moves, until it is frozen again", async () => {
    const first = await trained.logProbs(rows, "current")
    await trained.freezeReference()
    expect(await trained.logProbs(rows, "reference")).toEqual(first)
    await trained.forwardBackward(rows, { kind: "clone" })
    await trained.optimizerStep(step)
    const second = await trained.logProbs(rows, "current")
    expect(second).not.toEqual(first)
    expect(await trained.logProbs(rows, "reference")).toEqual(first)
    await trained.freezeReference()
    expect(await trained.logProbs(rows, "reference")).toEqual(second)
  })

  it("is what the KL term measures the distance to, by each estimator", async () => {
    await trained.freezeReference()
    const reference = await trained.logProbs(rows, "reference")
    await trained.forwardBackward(rows, { kind: "clone" })
    await trained.optimizerStep(step)
    const current = await trained.logProbs(rows, "current")
    const withReference = rows.map((row, index) => ({ ...row, advantage: 0, referenceLogProbs: reference[index]! }))
    const differences = current.flatMap((values, row) => [...values].map((value, i) => reference[row]![i]! - value))
    const mean = (estimate: (d: number) => number) =>
      differences.reduce((sum, d) => sum + estimate(d), 0) / differences.length
    const wanted = {
      k1: mean((d) => -d),
      k2: mean((d) => (d * d) / 2),
      k3: mean((d) => Math.exp(d) - d - 1),
    }
    expect(wanted.k3).toBeGreaterThan(1e-3)
    for (const klEstimator of ["k1", "k2", "k3"] as const) {
      const weighed = { kind: "policy", klWeight: 0.5, klEstimator } as const
      const report = await trained.forwardBackward(withReference, weighed)
      expect(report.kl).toBeCloseTo(wanted[klEstimator], 5)
      expect(report.loss).toBeCloseTo(0.5 * wanted[klEstimator], 5)
      // Without a weight it is reported all the same.
      const watched = await trained.forwardBackward(withReference, { ...weighed, klWeight: 0 })
      expect(watched.kl).toBeCloseTo(wanted[klEstimator], 5)
      expect(Math.abs(watched.loss)).toBe(0)
    }
  })
})
