import { cp, mkdtemp, readFile, rm, truncate, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import type {
  AdamWParameters,
  ClippedSurrogate,
  LinearLoss,
  LogProbsOptions,
  SampleRequest,
} from "../../src/engine/engine.ts"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import type { NativePolicyOptions } from "../../src/engine/native/options.ts"
import { type Segment, type Sequence, stepSequence } from "../../src/engine/sequence.ts"
import type { ModelConfig } from "../../src/model-files/model-config.ts"
import { native } from "../../src/native/native.ts"
import { GigpoError } from "../../src/util/errors.ts"
import { Random } from "../../src/util/random.ts"
import { credited, crossEntropy, modelPath, surrogate } from "./fixtures.ts"

// Every fault is a GigpoError with a code and a sentence that names the fix, and the policy stays usable.

async function expectRefused(call: () => Promise<unknown>, code: string, message: RegExp): Promise<void> {
  const error = await call().then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(GigpoError)
  expect(error).toMatchObject({ code, message: expect.stringMatching(message) })
}

const config: ModelConfig = {
  architecture: "Qwen3",
  vocabularySize: 67,
  hiddenSize: 16,
  intermediateSize: 24,
  layers: 1,
  heads: 4,
  keyValueHeads: 2,
  headSize: 8,
  rmsNormEpsilon: 1e-6,
  ropeTheta: 1e4,
  tieEmbeddings: true,
  queryKeyValueBias: false,
  queryKeyNorm: true,
  maxPositions: 64,
}

describe("a policy in use rejects", () => {
  let policy: NativePolicy
  beforeAll(async () => {
    policy = await NativePolicy.open(modelPath("qwen3"))
  })
  afterAll(() => policy.dispose())

  const request: SampleRequest = { prompt: Int32Array.of(1, 2, 3), maxTokens: 5, stopTokens: [], key: [0, 0] }
  const credit = {
    advantage: 1,
    logProbs: Float32Array.of(-1, -2),
    referenceLogProbs: Float32Array.of(-1, -2),
  }
  const row = stepSequence(Int32Array.of(1, 2), Int32Array.of(3, 4), credit)

  afterEach(async () => {
    const { tokens } = await policy.sample(request)
    expect(tokens.length).toBe(5)
  })

  it.each<[string, Partial<SampleRequest>, RegExp]>([
    ["an empty prompt", { prompt: new Int32Array(0) }, /^prompt is empty; give at least one token\.$/],
    ["a token beyond the vocabulary", { prompt: Int32Array.of(1, 67) }, /token 67.*vocabulary of 67/],
    ["a negative token", { prompt: Int32Array.of(-1) }, /token -1/],
    ["a prompt that is a plain array", { prompt: [1, 2] as unknown as Int32Array }, /must be an Int32Array/],
    ["a prompt longer than the model", { prompt: new Int32Array(65) }, /need 70 tokens.*room for 64.*maxPositions/],
    ["a reply that cannot fit", { maxTokens: 62 }, /need 65 tokens.*room for 64.*lower maxTokens/],
    ["a reply of no tokens", { maxTokens: 0 }, /^maxTokens is 0; it must be an integer of at least 1\.$/],
    ["a reply of half a token", { maxTokens: 1.5 }, /maxTokens is 1.5/],
    [
      "stop tokens of null",
      { stopTokens: null as never },
      /^stopTokens must be a list of token ids; give \[\] for none/,
    ],
    ["half a stop token", { stopTokens: [0.5] }, /stopTokens must be a list of token ids/],
    ["no key", { key: undefined as never }, /^key must be two 32-bit integers/],
    ["a key of one word", { key: [1] as never }, /key must be two/],
    ["a negative temperature", { temperature: -1 }, /temperature is -1; it must be 0 \(greedy decoding\)/],
    ["a temperature of NaN", { temperature: NaN }, /temperature is NaN/],
    ["an infinite temperature", { temperature: Infinity }, /temperature is Infinity/],
    ["a temperature that float32 cannot divide by", { temperature: 1e-30 }, /temperature is 1e-30.*at least 0\.000001/],
  ])("to sample with %s", async (_, wrong, message) => {
    await expectRefused(() => policy.sample({ ...request, ...wrong }), "BAD_ARGUMENT", message)
  })

  it("logits of invalid tokens", async () => {
    await expectRefused(() => policy.logits(new Int32Array(0)), "BAD_ARGUMENT", /tokens is empty/)
    await expectRefused(() => policy.logits(Int32Array.of(67)), "BAD_ARGUMENT", /token 67/)
    await expectRefused(() => policy.logits(new Int32Array(65)), "BAD_ARGUMENT", /65 tokens.*opened for 64/)
  })

  const segments = (...given: Partial<Segment>[]): Partial<Sequence> => ({
    segments: given.map((segment) => ({ start: 2, length: 2, ...credit, ...segment })),
  })
  const badRows: [string, Partial<Sequence>, RegExp][] = [
    ["an empty prompt", segments({ start: 0 }), /sequences\[1\]: the prompt is empty/],
    ["an empty reply", segments({ start: 4, length: 0 }), /sequences\[1\]: the completion is empty/],
    ["a token beyond the vocabulary", { tokens: Int32Array.of(1, 2, 3, 67) }, /sequences\[1\]: token 67/],
    ["a negative token", { tokens: Int32Array.of(1, -2, 3, 4) }, /sequences\[1\]: token -2/],
    ["plain arrays", { tokens: [1, 2, 3, 4] as unknown as Int32Array }, /sequences\[1\]: tokens must be an Int32Array/],
    [
      "more tokens than fit",
      { tokens: new Int32Array(72), ...segments({ start: 70 }) },
      /72 tokens.*opened for 64.*maxPositions/,
    ],
    [
      "a span that ends behind it",
      segments({ length: 3 }),
      /sequences\[1\]: it ends at 5, but the sequence has 4 tokens/,
    ],
    ["half a span", segments({ start: 1.5 }), /sequences\[1\]: start is 1.5 and length 2; they must be integers/],
    [
      "spans that overlap",
      segments({ length: 2 }, { start: 3, length: 1 }),
      /sequences\[1\]\.segments\[1\]: it starts at 3, .* ends at 4/,
    ],
    [
      "spans out of order",
      segments({ start: 3, length: 1 }, { start: 1, length: 1 }),
      /sequences\[1\]\.segments\[1\]: it starts at 1/,
    ],
    [
      "another temperature",
      segments({ temperature: 0.5 }),
      /sequences\[1\]: it was sampled at temperature 0.5, .* computed at 1;/,
    ],
    [
      "a constraint",
      segments({ constraint: "json" }),
      /sequences\[1\]: its constraint is not supported by the native engine/,
    ],
    ["attachments that are no images", { attachments: [{}] }, /sequences\[1\]\.attachments\[0\] is no image/],
  ]
  it.each(badRows)("scoring of a row with %s", async (_, wrong, message) => {
    await expectRefused(() => policy.logProbs([row, { ...row, ...wrong }]), "BAD_ARGUMENT", message)
  })
  it.each(badRows)("training on a row with %s", async (_, wrong, message) => {
    const rows = [row, { ...row, ...wrong }]
    await expectRefused(() => policy.forwardBackward(rows, surrogate()), "BAD_ARGUMENT", message)
    await expectRefused(() => policy.forwardBackward(rows, crossEntropy), "BAD_ARGUMENT", message)
    const gradient = await policy.tensor("model.norm.weight", "gradients")
    expect(gradient.every((value) => value === 0)).toBe(true)
  })

  it.each<[string, Sequence, string, RegExp]>([
    [
      "without an advantage",
      { ...row, segments: [{ ...row.segments[0]!, advantage: undefined as unknown as number }] },
      "NON_FINITE",
      /sequences\[0\]\.advantage is undefined/,
    ],
    ["whose advantage is NaN", credited(row, { advantage: NaN }), "NON_FINITE", /sequences\[0\]\.advantage is NaN/],
    [
      "with too few advantages",
      credited(row, { advantage: new Float32Array(1) }),
      "BAD_ARGUMENT",
      /sequences\[0\]: advantage must be a Float32Array with one number for each/,
    ],
    [
      "with an infinite one of them",
      credited(row, { advantage: Float32Array.of(1, Infinity) }),
      "NON_FINITE",
      /sequences\[0\]\.advantage contains/,
    ],
    [
      "without log-probabilities",
      stepSequence(Int32Array.of(1, 2), Int32Array.of(3, 4), {
        advantage: 1,
        referenceLogProbs: credit.referenceLogProbs,
      }),
      "BAD_ARGUMENT",
      /logProbs must be a Float32Array with one number for each of the 2/,
    ],
    [
      "with too many of them",
      credited(row, { logProbs: new Float32Array(3) }),
      "BAD_ARGUMENT",
      /logProbs must be a Float32Array with one/,
    ],
    [
      "with an infinite one",
      credited(row, { logProbs: Float32Array.of(0, -Infinity) }),
      "NON_FINITE",
      /sequences\[0\]\.logProbs/,
    ],
    [
      "with an infinite one of the trainer's",
      credited(row, { oldLogProbs: Float32Array.of(0, -Infinity) }),
      "NON_FINITE",
      /sequences\[0\]\.oldLogProbs/,
    ],
    [
      "without the reference's",
      stepSequence(Int32Array.of(1, 2), Int32Array.of(3, 4), { advantage: 1, logProbs: credit.logProbs }),
      "BAD_ARGUMENT",
      /referenceLogProbs must be a Float32Array with one number/,
    ],
    [
      "with weights",
      credited(row, { weights: Float32Array.of(1, 2) }),
      "BAD_ARGUMENT",
      /sequences\[0\] has weights, which this loss does not support; evaluate the loss/,
    ],
    [
      "with a scaled clip",
      credited(row, { clipScale: 2 }),
      "BAD_ARGUMENT",
      /sequences\[0\] has a clipScale, which this loss does not support; evaluate the loss/,
    ],
  ])("the policy loss for a row %s", async (_, wrong, code, message) => {
    for (const importanceSamplingLevel of ["token", "sequence"] as const) {
      const loss = surrogate({ klWeight: 0.1, importanceSamplingLevel })
      await expectRefused(() => policy.forwardBackward([wrong], loss), code, message)
    }
  })

  it("training without rows", async () => {
    const context = { tokens: Int32Array.of(1, 2), segments: [] }
    for (const rows of [[], [context]])
      await expectRefused(() => policy.forwardBackward(rows, crossEntropy), "BAD_ARGUMENT", /no sequences/)
    expect(await policy.logProbs([])).toEqual({ logProbs: new Float32Array(0) })
    expect(await policy.logProbs([context])).toEqual({ logProbs: new Float32Array(0) })
  })

  it.each<[Partial<ClippedSurrogate>, RegExp]>([
    [{ temperature: 0 }, /temperature is 0; it must be at least/],
    [{ clipLow: -0.1 }, /clipLow is -0.1/],
    [{ clipHigh: NaN }, /clipHigh is NaN/],
    [{ clipDual: 1 }, /clipDual is 1; it must be above 1/],
    [{ klWeight: Infinity }, /klWeight is Infinity/],
    [{ entropyWeight: Infinity }, /entropyWeight is Infinity/],
    [{ klEstimator: "k4" as "k3" }, /klEstimator is "k4"; give one of "k1", "k2", "k3", "abs", "k1\+", "k3\+"\./],
    [{ aggregation: "mean" as "token-mean" }, /aggregation is "mean"; give one of "token-mean"/],
    [{ aggregation: "sequence-mean-fixed-length" }, /needs fixedLength, the number of tokens that each/],
    [{ aggregation: "sequence-mean-fixed-length", fixedLength: 0 }, /fixedLength is 0; it must be an integer/],
    [{ fixedLength: 5 }, /fixedLength applies only to the aggregation .* not to "token-mean"; remove it/],
    [
      { importanceSamplingLevel: "tokens" as "token" },
      /importanceSamplingLevel is "tokens"; give one of "token", "sequence"\./,
    ],
    [{ unit: "step" as "completion" }, /unit is "step"; give one of "completion", "conversation"\./],
    [{ kind: "ppo" as "clipped-surrogate" }, /has kind "ppo"; use cross-entropy, clipped-surrogate, linear\./],
  ])("the loss %j", async (wrong, message) => {
    await expectRefused(() => policy.forwardBackward([row], surrogate(wrong)), "BAD_ARGUMENT", message)
  })

  it("temperature 0 in scoring and training", async () => {
    const message = /temperature is 0; it must be at least/
    await expectRefused(() => policy.logProbs([row], { temperature: 0 }), "BAD_ARGUMENT", message)
    const linear: LinearLoss = { kind: "linear", temperature: 0, coefficients: new Float32Array(2) }
    await expectRefused(() => policy.forwardBackward([row], linear), "BAD_ARGUMENT", message)
  })

  it.each<[LogProbsOptions, RegExp]>([
    [{ model: "teacher" }, /no model "teacher"; use "current" or "reference"\./],
    [{ model: "reference" }, /no reference policy: call reference\.freeze\(\)/],
    [
      { needs: ["logits" as "entropy"] },
      /does not support the statistic "logits"; it supports "entropy", "hellinger", "top"\./,
    ],
  ])("to score with the options %j", async (wrong, message) => {
    await expectRefused(() => policy.logProbs([row], wrong), "BAD_ARGUMENT", message)
  })

  it.each<[Partial<AdamWParameters>, RegExp]>([
    [{ learningRate: -1 }, /learningRate is -1/],
    [{ learningRate: NaN }, /learningRate is NaN/],
    [{ beta1: 1 }, /beta1 is 1; it must be at least 0 and below 1/],
    [{ beta2: -0.1 }, /beta2 is -0.1/],
    [{ epsilon: 0 }, /epsilon is 0; it must be positive/],
    [{ weightDecay: -1 }, /weightDecay is -1/],
    [{ maxGradientNorm: 0 }, /maxGradientNorm is 0; it must be positive/],
  ])("the optimizer step %j", async (wrong, message) => {
    await expectRefused(() => policy.optimizerStep({ learningRate: 1e-3, ...wrong }), "BAD_ARGUMENT", message)
  })

  it("reading of an unknown weight", async () => {
    await expectRefused(() => policy.tensor("lm_head.weight"), "BAD_ARGUMENT", /no weight named lm_head\.weight/)
  })
})

describe("a model is rejected", () => {
  let folder: string
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-"))
    await cp(modelPath("qwen2"), folder, { recursive: true })
  })
  afterEach(() => rm(folder, { recursive: true }))

  async function changeConfig(change: Record<string, unknown>): Promise<void> {
    const path = join(folder, "config.json")
    await writeFile(path, JSON.stringify({ ...JSON.parse(await readFile(path, "utf8")), ...change }))
  }

  it("if there is no folder", async () => {
    await expectRefused(() => NativePolicy.open(join(folder, "nowhere")), "BAD_MODEL", /model folder/)
  })

  it("without its configuration", async () => {
    await rm(join(folder, "config.json"))
    await expectRefused(() => NativePolicy.open(folder), "BAD_MODEL", /config\.json/)
  })

  it("without its weights", async () => {
    await rm(join(folder, "model.safetensors"))
    await expectRefused(() => NativePolicy.open(folder), "BAD_MODEL", /model\.safetensors/)
  })

  it("with truncated weights", async () => {
    await truncate(join(folder, "model.safetensors"), 50_000)
    await expectRefused(() => NativePolicy.open(folder), "BAD_MODEL", /model\.safetensors/)
  })

  it("with weights that are not safetensors", async () => {
    await writeFile(join(folder, "model.safetensors"), "no header here, and nothing else either")
    await expectRefused(() => NativePolicy.open(folder), "BAD_MODEL", /model\.safetensors/)
  })

  it("with weights that do not fit its configuration", async () => {
    await changeConfig({ intermediate_size: 81 })
    await expectRefused(
      () => NativePolicy.open(folder),
      "BAD_MODEL",
      /gate_proj\.weight" has shape \[80, 32\].*\[81, 32\]/,
    )
    await changeConfig({ intermediate_size: 80, num_hidden_layers: 3, layer_types: null })
    await expectRefused(() => NativePolicy.open(folder), "BAD_MODEL", /lack tensors "model\.layers\.2\./)
  })

  it("by a policy of another shape, whose weights stay unchanged", async () => {
    const policy = await NativePolicy.open(folder)
    const before = await policy.tensor("model.norm.weight")
    await expectRefused(() => policy.load(modelPath("qwen3")), "BAD_MODEL", /config\.json/)
    expect(await policy.tensor("model.norm.weight")).toEqual(before)
    await policy.dispose()
  })

  it("if it is too large for the machine", async () => {
    const huge = { ...config, hiddenSize: 65536, intermediateSize: 262144, layers: 200, heads: 512, headSize: 128 }
    await expectRefused(
      () => NativePolicy.create(huge, new Random(0)),
      "OUT_OF_MEMORY",
      /This needs weights .* are free\. Take a smaller model/,
    )
  })

  it.each<[Partial<ModelConfig>, RegExp]>([
    [{ heads: 3 }, /heads \(3\) must be a multiple of keyValueHeads \(2\)/],
    [{ headSize: 7 }, /headSize is 7; rotary positions need it to be even/],
    [{ layers: 0 }, /layers is 0/],
    [{ vocabularySize: 1.5 }, /vocabularySize is 1.5/],
    [{ rmsNormEpsilon: 0 }, /rmsNormEpsilon is 0/],
    [{ ropeTheta: NaN }, /ropeTheta is NaN/],
    [{ architecture: "Falcon" as "Qwen2" }, /architecture is Falcon; it must be one of Qwen2, Qwen3/],
    [{ gate: "gelu_tanh" }, /gate is gelu_tanh; in a Qwen\d model it must be left out/],
    [{ embeddingScale: 2 }, /embeddingScale is 2; in a Qwen\d model it must be left out/],
    [{ queryScalar: 8 }, /queryScalar is 8; Qwen\d models have none/],
    [{ otherRotary: [{ ropeTheta: 5 }] }, /otherRotary has 1 entries; in a Qwen\d model it must have 0/],
    [{ layerTable: [] }, /layerTable has 0 entries, but there are \d+ layers/],
    [{ layerTable: Array(config.layers).fill({ window: -1, rope: 0 }) }, /A window of layerTable is -1/],
    [
      { layerTable: Array(config.layers).fill({ window: 0, rope: 1 }) },
      /A rope of layerTable is 1; there is the table 0/,
    ],
  ])("with the configuration %j", async (wrong, message) => {
    await expectRefused(() => NativePolicy.create({ ...config, ...wrong }, new Random(0)), "BAD_ARGUMENT", message)
  })

  it.each<[NativePolicyOptions, RegExp]>([
    [{ threads: 0 }, /threads must be .*, not 0/],
    [{ threads: 5000 }, /threads must be between 1 and 1024/],
    [{ maxPositions: 1.5 }, /maxPositions must be an integer.*, not 1.5/],
    [{ microBatchTokens: -1 }, /microBatchTokens must be an integer.*, not -1/],
    [{ maxTrainTokens: 0 }, /maxTrainTokens must be an integer.*, not 0/],
    [{ kvCacheBytes: NaN }, /kvCacheBytes must be a number, not NaN/],
    [{ device: "tpu" as "cpu" }, /device must be "auto", "cpu", .*, not "tpu"/],
    [{ precision: "float16" as "float32" }, /precision must be "float32" or "bfloat16", not "float16"/],
    [{ recompute: "all" as "none" }, /recompute must be .* not "all"/],
    [{ optimizerPrecision: "int8" as "float32" }, /optimizerPrecision must be .* not "int8"/],
    [{ lora: { rank: 0 } }, /lora.rank must be an integer .*not 0/],
    [{ lora: { rank: 4, alpha: -1 } }, /lora.alpha must be above 0, not -1/],
  ])("with the options %j", async (wrong, message) => {
    await expectRefused(() => NativePolicy.create(config, new Random(0), wrong), "BAD_ARGUMENT", message)
  })

  it.skipIf(!native().deviceReport().unavailable)("on a missing GPU", async () => {
    await expectRefused(() => NativePolicy.open(folder, { device: "cuda" }), "DEVICE_UNAVAILABLE", /Use device "cpu"/)
  })
})

describe("non-finite weights", () => {
  let policy: NativePolicy
  beforeAll(async () => {
    policy = await NativePolicy.create(config, new Random(1), { deviation: Number.MAX_VALUE })
  })
  afterAll(() => policy.dispose())

  it("make sampling fail instead of returning arbitrary tokens", async () => {
    const request = { prompt: Int32Array.of(1, 2), maxTokens: 3, stopTokens: [], key: [0, 0] } as const
    await expectRefused(() => policy.sample(request), "NON_FINITE", /earlier checkpoint/)
  })

  it("make the optimizer step be skipped and reported", async () => {
    const before = await policy.tensor("model.norm.weight")
    const rows = [stepSequence(Int32Array.of(1, 2), Int32Array.of(3))]
    expect((await policy.forwardBackward(rows, crossEntropy)).loss).toBeNaN()
    const { gradientNorm, skipped } = await policy.optimizerStep({ learningRate: 0.1 })
    expect([Number.isFinite(gradientNorm), skipped, policy.optimizerSteps]).toEqual([false, true, 0])
    expect(await policy.tensor("model.norm.weight")).toEqual(before)
    const gradient = await policy.tensor("model.norm.weight", "gradients")
    expect(gradient.every((value) => value === 0)).toBe(true)
  })
})

describe("a disposed policy", () => {
  it("rejects every call", async () => {
    const policy = await NativePolicy.create(config, new Random(0))
    await policy.dispose()
    const tokens = Int32Array.of(1)
    const rows = [stepSequence(tokens, tokens)]
    const calls: (() => Promise<unknown>)[] = [
      () => policy.sample({ prompt: tokens, maxTokens: 1, stopTokens: [], key: [0, 0] }),
      () => policy.logits(tokens),
      () => policy.logProbs(rows),
      () => policy.forwardBackward(rows, crossEntropy),
      () => policy.optimizerStep({ learningRate: 1 }),
      () => policy.reference.freeze(),
      () => policy.clearGradients(),
      () => policy.tensor("model.norm.weight"),
    ]
    for (const call of calls) await expectRefused(call, "DISPOSED", /open it again/)
  })

  it("can be disposed again, at once or later", async () => {
    const policy = await NativePolicy.create(config, new Random(0))
    await Promise.all([policy.dispose(), policy.dispose()])
    await new Promise((resolve) => setTimeout(resolve, 10))
    await policy.dispose()
    await policy[Symbol.asyncDispose]()
  })
})
