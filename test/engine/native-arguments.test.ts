import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { leastPositions } from "../../src/engine/check-arguments.ts"
import { settle } from "../../src/engine/native/started.ts"
import {
  type NativeBatch,
  type NativeEngine,
  type NativeEngineOptions,
  type NativeTrainingLoss,
  native,
} from "../../src/native/native.ts"
import { surrogate } from "./fixtures.ts"

// What TypeScript checks first never comes so far; were it to, native code must reject it, not misread it.

const model = {
  vocabularySize: 31,
  hiddenSize: 8,
  intermediateSize: 8,
  layers: 1,
  heads: 1,
  keyValueHeads: 1,
  headSize: 8,
  maxPositions: 32,
  rmsNormEpsilon: 1e-6,
  ropeTheta: 1e4,
  tieEmbeddings: true,
  queryKeyValueBias: false,
  queryKeyNorm: false,
}
const options: NativeEngineOptions = {
  device: "cpu",
  precision: "float32",
  threads: 1,
  microBatchTokens: 64,
  maxTrainTokens: 0,
  kvCacheBytes: 2 ** 16,
  recompute: "auto",
  optimizerPrecision: "float32",
  sharePrefixes: true,
  sampleWithCublas: false,
  trained: true,
  reference: false,
  critic: false,
  trainVision: false,
}
/** Two rows, the second of two spans. */
const batch: NativeBatch = {
  tokens: Int32Array.of(1, 2, 3, 4, 5, 6, 7, 8),
  rowOffsets: Int32Array.of(0, 3, 8),
  spanRows: Int32Array.of(0, 1, 1),
  spanBegins: Int32Array.of(1, 1, 4),
  spanCounts: Int32Array.of(2, 2, 1),
  advantages: new Float32Array(5),
  oldLogProbs: new Float32Array(5),
  coefficients: new Float32Array(5),
}
const { kind: _, ...numbers } = surrogate()
const loss: NativeTrainingLoss = {
  ...numbers,
  mode: "policy",
  temperature: 1,
  unit: "completion",
  skipZeroAdvantage: false,
}

describe("native code", () => {
  let engine: NativeEngine
  beforeAll(() => {
    engine = new (native().Engine)(model, options)
  })
  afterAll(() => engine.dispose())

  const train = (of: object, by: object = loss) =>
    settle(() => engine.forwardBackward(of as NativeBatch, by as NativeTrainingLoss))

  it("accepts valid arguments", async () => {
    expect(await train(batch)).toMatchObject({ tokens: 5 })
    expect(await train(batch, { mode: "linear", temperature: 1 })).toMatchObject({ tokens: 5 })
    expect((await settle(() => engine.logProbs(batch, "current", 1, false))).entropies.length).toBe(5)
  })

  it.each<[object, RegExp]>([
    [{ mode: "custom" }, /mode is "custom"; give one of "policy", "sft", "linear"\./],
    [{ klEstimator: "k4" }, /klEstimator is "k4"; give one of "k1", "k2", "k3", "abs", "k1\+", "k3\+"\./],
    [{ aggregation: "mean" }, /aggregation is "mean"; give one of "token-mean", /],
    [{ aggregation: "sequence-mean-fixed-length", fixedLength: 0 }, /fixedLength must be at least 1\./],
    [{ importanceSamplingLevel: 1 }, /importanceSamplingLevel is "1"; give one of "token", "sequence"\./],
    [{ unit: undefined }, /unit is "undefined"; give one of "completion", "conversation"\./],
    [{ klWeight: 0.1 }, /This loss needs referenceLogProbs\./],
  ])("does not know the loss %j", async (wrong, message) => {
    const call = train(batch, { ...loss, ...wrong })
    await expect(call).rejects.toMatchObject({ code: "BAD_ARGUMENT", message: expect.stringMatching(message) })
  })

  it.each<[object, string]>([
    [{ clipLow: "0.2" }, "clipLow must be a number."],
    [{ skipZeroAdvantage: 1 }, "skipZeroAdvantage must be true or false."],
  ])("takes no other type for a number: %j", async (wrong, message) => {
    await expect(train(batch, { ...loss, ...wrong })).rejects.toThrow(message)
  })

  it.each<[string, object, RegExp]>([
    ["too few advantages", { advantages: new Float32Array(4) }, /^advantages has 4 elements, not 5\.$/],
    ["too many log-probabilities", { oldLogProbs: new Float32Array(6) }, /^oldLogProbs has 6 elements, not 5\.$/],
    ["none", { oldLogProbs: undefined }, /^This loss needs oldLogProbs\.$/],
    ["no rows' ends", { rowOffsets: new Int32Array(0) }, /^rowOffsets is empty\.$/],
    ["tokens that are cut off", { tokens: new Int32Array(7) }, /^tokens has 7 elements, not 8\.$/],
    ["spans without a row", { spanRows: Int32Array.of(0, 1) }, /^spanBegins has 3 elements, not 2\.$/],
    ["offsets that do not begin at 0", { rowOffsets: Int32Array.of(1, 3, 8) }, /first row does not begin at token 0/],
    ["offsets that decrease", { rowOffsets: Int32Array.of(0, 9, 8) }, /tokens end before they begin/],
    ["a row that is not there", { spanRows: Int32Array.of(0, 1, 2) }, /a span has an invalid row/],
    ["rows out of order", { spanRows: Int32Array.of(1, 1, 0) }, /spans are out of order|overlaps the previous span/],
    ["a span at a row's beginning", { spanBegins: Int32Array.of(0, 1, 4) }, /begins at the first token of its row/],
    ["spans that overlap", { spanBegins: Int32Array.of(1, 1, 2) }, /overlaps the previous span/],
    ["a span beyond its row", { spanBegins: Int32Array.of(1, 1, 5) }, /extends beyond its row/],
    ["an empty span", { spanCounts: Int32Array.of(0, 4, 1) }, /a span is empty/],
    [
      "a token beyond the vocabulary",
      { tokens: Int32Array.of(1, 2, 3, 31, 5, 6, 7, 8) },
      /^sequences\[1\]: token (31|-4) is outside the model's vocabulary of 31\.$/,
    ],
    [
      "a negative token",
      { tokens: Int32Array.of(1, 2, 3, -4, 5, 6, 7, 8) },
      /^sequences\[1\]: token (31|-4) is outside the model's vocabulary of 31\.$/,
    ],
  ])("does not read a batch with %s", async (_, wrong, message) => {
    const call = train({ ...batch, ...wrong })
    await expect(call).rejects.toMatchObject({ code: "BAD_ARGUMENT", message: expect.stringMatching(message) })
  })

  it("rejects arrays of another type", async () => {
    await expect(train({ ...batch, advantages: new Float64Array(5) })).rejects.toThrow(
      "advantages must be a Float32Array.",
    )
    await expect(train({ ...batch, tokens: [1, 2, 3] })).rejects.toThrow("tokens must be an Int32Array.")
  })

  it("rejects batches for a critic without its columns", async () => {
    const critic = await settle(() => engine.critic())
    const whole = { ...batch, returns: new Float32Array(5), oldValues: new Float32Array(5) }
    expect((await settle(() => critic.forwardBackward(whole, { clip: 1 }))).tokens).toBe(5)
    expect((await settle(() => critic.predict(batch))).length).toBe(5)
    const calls: [() => { promise: Promise<unknown> }, RegExp][] = [
      [() => critic.forwardBackward(batch, { clip: 1 }), /This loss needs returns/],
      [() => critic.forwardBackward({ ...batch, returns: new Float32Array(5) }, { clip: 1 }), /A clip needs oldValues/],
      [() => critic.forwardBackward({ ...whole, returns: new Float32Array(4) }, { clip: 1 }), /returns has 4 elements/],
      [() => critic.forwardBackward(whole, { clip: NaN }), /clip must be a number of at least 0/],
      [() => critic.predict({ ...whole, oldValues: new Float32Array(6) }), /oldValues has 6 elements, not 5/],
      [() => critic.read("weights", 99, 0, 1), /There is no parameter 99/],
    ]
    for (const [call, message] of calls) {
      expect(call).toThrow(expect.objectContaining({ code: "BAD_ARGUMENT", message: expect.stringMatching(message) }))
    }
    const cut = critic.predict({ ...batch, spanBegins: Int32Array.of(0, 1, 4) })
    await expect(cut.promise).rejects.toMatchObject({ code: "BAD_ARGUMENT" })
    const Critic = critic.constructor as new () => unknown
    expect(() => new Critic()).toThrow("Critics are created by their engine.")
  })

  it("checks names of buffers, parameters and file types", async () => {
    const bytes = new Uint8Array(4)
    const calls: [() => { promise: Promise<unknown> }, RegExp][] = [
      [() => engine.read("momentum" as "weights", 0, 0, 1), /buffer is "momentum"; give one of "weights", /],
      [() => engine.read("weights", 99, 0, 1), /There is no parameter 99/],
      [() => engine.read("weights", 0, 247, 2), /embed_tokens.weight has 248 elements; 2 from 247 on exceed its size/],
      [() => engine.read("weights", 0, -1, 2), /exceed its size/],
      [() => engine.write("gradients", 0, 248, bytes, "F32"), /exceed its size/],
      [() => engine.write("weights", 0, 0, bytes, "F64" as "F32"), /type is "F64"; give one of "F32", "F16", "BF16"/],
      [
        () => engine.logProbs(batch, "teacher" as "current", 1, false),
        /of is "teacher"; give one of "current", "reference"/,
      ],
    ]
    for (const [call, message] of calls) {
      expect(call).toThrow(expect.objectContaining({ code: "BAD_ARGUMENT", message: expect.stringMatching(message) }))
    }
    const merged = engine.write("merged", 0, 0, bytes, "F32")
    await expect(merged.promise).rejects.toMatchObject({ message: "Merged weights are read-only." })
  })

  it.each<[object, RegExp]>([
    [{ device: "tpu" }, /device is "tpu"/],
    [{ precision: "float16" }, /precision is "float16"; give one of "float32", "bfloat16"/],
    [{ recompute: "all" }, /recompute is "all"/],
    [{ optimizerPrecision: "int8" }, /optimizerPrecision is "int8"/],
    [{ threads: "2" }, /threads must be a number/],
  ])("does not open an engine with %j", (wrong, message) => {
    expect(() => new (native().Engine)(model, { ...options, ...wrong } as NativeEngineOptions)).toThrow(message)
  })

  it("has the same minimum sequence length as TypeScript", () => {
    const plan = (maxPositions: number) => native().memoryPlan({ ...model, maxPositions }, options, 1e12)
    expect(plan(leastPositions).maxTrainTokens).toBeGreaterThan(0)
    expect(() => plan(leastPositions - 1)).toThrow(`maxPositions must be between ${leastPositions} and `)
  })

  it("checks names and lengths of the arguments of kernels", () => {
    const { tokenLogProbs, clippedSurrogate, groupAnchors, groupAnchorsOnGpu } = native()
    const tokens = Int32Array.of(0, 1)
    expect(() => tokenLogProbs(new Float32Array(5), 3, tokens, 1, "cpu")).toThrow(/number of logits/)
    expect(() => tokenLogProbs(new Float32Array(6), 3, tokens, 1, "tpu" as "cpu")).toThrow(/device is "tpu"/)
    const two = new Float32Array(2)
    const input = { logProbs: two, oldLogProbs: two, advantages: two, mask: two, lengths: Int32Array.of(2) }
    const { mode: _, ...options } = loss as Extract<NativeTrainingLoss, { mode: "policy" }>
    expect(clippedSurrogate(input, options, "cpu").gradient.length).toBe(2)
    expect(() => clippedSurrogate({ ...input, mask: new Float32Array(1) }, options, "cpu")).toThrow(
      /mask has 1 elements/,
    )
    expect(() => clippedSurrogate({ ...input, lengths: tokens }, options, "cpu")).toThrow(
      /must sum to the number of tokens/,
    )
    expect(() => clippedSurrogate(input, { ...options, importanceSamplingLevel: "row" }, "cpu")).toThrow(
      /importanceSamplingLevel is "row"/,
    )
    const bytes = new Uint8Array(3)
    for (const offsets of [
      [0, 1],
      [0, 1, 4],
      [0, 2, 1],
      [-1, 1, 2],
      [0, NaN, 2],
    ])
      for (const group of [groupAnchors, groupAnchorsOnGpu])
        expect(() => group(tokens, bytes, Float64Array.from(offsets))).toThrow(/offset/)
  })
})
