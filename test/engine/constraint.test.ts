import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Completion, SampleRequest } from "../../src/engine/engine.ts"
import { Constraint } from "../../src/engine/native/constraint.ts"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { type Sequence, stepSequence } from "../../src/engine/sequence.ts"
import { jsonSchema } from "../../src/grammar/json-schema.ts"
import { repeat, sequence, text } from "../../src/grammar/node.ts"
import { clippedSurrogate } from "../../src/loss/clipped-surrogate.ts"
import type { ModelConfig } from "../../src/model-files/model-config.ts"
import { Random } from "../../src/util/random.ts"
import { allowed } from "../grammar/texts.ts"
import { byRow } from "./by-row.ts"

// A model over bytes: token b is byte b, 256 ends a text, and the model has some rows more.
const model: ModelConfig = {
  ...{
    architecture: "Qwen2",
    rmsNormEpsilon: 1e-6,
    ropeTheta: 1e4,
    tieEmbeddings: true,
    queryKeyValueBias: true,
    queryKeyNorm: false,
  },
  ...{
    maxPositions: 512,
    hiddenSize: 32,
    layers: 2,
    heads: 4,
    keyValueHeads: 2,
    headSize: 8,
    intermediateSize: 64,
    vocabularySize: 270,
  },
}
const bytes = {
  bytes: Uint8Array.from({ length: 256 }, (_, byte) => byte),
  offsets: Int32Array.from({ length: 258 }, (_, token) => Math.min(token, 256)),
  endTokens: Int32Array.of(256),
}
const schema = {
  type: "object",
  properties: { name: { enum: ["ann", "bo"] }, age: { type: "integer", minimum: 0, maximum: 199 } },
  required: ["name", "age"],
  additionalProperties: false,
}

const adapted = "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight"

describe.each([
  ["float32", undefined],
  ["bfloat16", undefined],
  ["float32", { rank: 4 }],
  ["bfloat16", { rank: 4 }],
] as const)("a constraint in %s with adapter %o", (precision, lora) => {
  const options = { precision, threads: 2, ...(lora && { lora }) }
  let policy: NativePolicy
  let constraint: Constraint
  beforeAll(async () => {
    policy = await NativePolicy.create(model, new Random(1), options)
    constraint = new Constraint(jsonSchema(schema), bytes)
  })
  afterAll(() => policy.dispose())

  const sample = (i: number, constrained = true, temperature = 1) =>
    policy.sample({
      prompt: Int32Array.of(1 + i, 2, 3),
      temperature,
      maxTokens: 60,
      stopTokens: [256],
      key: [i, 7],
      ...(constrained && { constraint }),
    })

  // bf16 rounds what is sampled and what is scored each in its own order, whether or not anything is masked.
  const bound = precision === "float32" ? 1e-4 : 0.05
  const expectSampled = async (by: NativePolicy, completions: Completion[], prompt: (i: number) => Int32Array) => {
    const scored = byRow(
      completions.map(({ tokens }, i) => stepSequence(prompt(i), tokens, { constraint })),
      await by.logProbs(completions.map(({ tokens }, i) => stepSequence(prompt(i), tokens, { constraint }))),
    )
    let furthest = 0
    for (const [i, { logProbs }] of scored.entries())
      for (const [j, logProb] of logProbs.entries())
        furthest = Math.max(furthest, Math.abs(logProb - completions[i]!.logProbs[j]!))
    expect(furthest).toBeLessThan(bound)
  }

  it("restricts sampling, next to unconstrained requests", async () => {
    const [held, free] = await Promise.all([
      Promise.all(Array.from({ length: 24 }, (_, i) => sample(i))),
      Promise.all(Array.from({ length: 24 }, (_, i) => sample(i, false))),
    ])
    for (const { tokens, finishReason } of held) {
      expect(finishReason).toBe("stop")
      const { name, age } = JSON.parse(Buffer.from(tokens.subarray(0, -1)).toString())
      expect(["ann", "bo"]).toContain(name)
      expect(Number.isInteger(age) && age >= 0 && age <= 199).toBe(true)
    }
    expect(new Set(held.map(({ tokens }) => Buffer.from(tokens).toString())).size).toBeGreaterThan(8)
    expect(free.some(({ tokens }) => tokens.length === 60)).toBe(true)
    // A completion depends on its request alone.
    for (const [i, { tokens }] of held.entries()) expect((await sample(i)).tokens).toEqual(tokens)
    for (const [i, { tokens }] of free.entries()) expect((await sample(i, false)).tokens).toEqual(tokens)
  })

  it("renormalizes log-probabilities over the allowed tokens, in sampling and training", async () => {
    const completions = await Promise.all(Array.from({ length: 12 }, (_, i) => sample(i)))
    const rows = completions.map(({ tokens, logProbs }, i) =>
      stepSequence(Int32Array.of(1 + i, 2, 3), tokens, { logProbs, constraint, advantage: (i % 3) - 1 }),
    )
    const scored = byRow(rows, await policy.logProbs(rows, { needs: ["entropy"] }))
    for (const [i, { logProbs, entropies }] of scored.entries())
      for (const [j, logProb] of logProbs.entries()) {
        expect(Math.abs(logProb - completions[i]!.logProbs[j]!)).toBeLessThan(bound)
        // Where one token alone is allowed it is certain.
        const open = allowed(constraint, completions[i]!.tokens.subarray(0, j)).length
        if (open === 1) expect([Math.abs(logProb), Math.abs(entropies![j]!)].every((value) => value < 1e-5)).toBe(true)
        expect(entropies![j]!).toBeLessThanOrEqual(Math.log(open) + 1e-3)
        expect(Math.abs(entropies![j]! - completions[i]!.entropies![j]!)).toBeLessThan(bound)
      }
    const report = await policy.forwardBackward(rows, clippedSurrogate().native!({ iteration: 0, iterations: 1 })!)
    expect(Number.isFinite(report.loss)).toBe(true)
    expect(Math.abs(report.metrics["policy/ratio"]! - 1)).toBeLessThan(bound)
    await policy.clearGradients()
    const without = byRow(
      rows.map(({ tokens, segments }) => ({
        tokens,
        segments: segments.map(({ constraint: _, ...segment }) => segment),
      })),
      await policy.logProbs(
        rows.map(({ tokens, segments }) => ({
          tokens,
          segments: segments.map(({ constraint: _, ...segment }) => segment),
        })),
      ),
    )
    expect(without[0]!.logProbs.some((value, j) => value < scored[0]!.logProbs[j]! - 1)).toBe(true)
  })

  it.each([0.7, 0])(
    "reports the entropy of the allowed tokens at temperature %d, as in training",
    async (temperature) => {
      const completions = await Promise.all(Array.from({ length: 12 }, (_, i) => sample(i, true, temperature)))
      const rows = completions.map(({ tokens }, i) => stepSequence(Int32Array.of(1 + i, 2, 3), tokens, { constraint }))
      const scored = byRow(rows, await policy.logProbs(rows, { needs: ["entropy"], temperature: temperature || 1 }))
      for (const [i, { entropies }] of scored.entries())
        for (const [j, entropy] of entropies!.entries())
          expect(Math.abs(entropy - completions[i]!.entropies![j]!)).toBeLessThan(bound)
    },
  )

  it("supports learning: rewarded texts become more likely", async () => {
    const trained = await NativePolicy.create(model, new Random(2), { ...options, deviation: 0.1 })
    const share = async (round: number) => {
      const all = await Promise.all(
        Array.from({ length: 64 }, (_, i) =>
          trained.sample({ prompt: Int32Array.of(5), maxTokens: 60, stopTokens: [256], key: [i, round], constraint }),
        ),
      )
      return { all, ann: all.map(({ tokens }) => Buffer.from(tokens).includes("ann")) }
    }
    const count = (flags: readonly boolean[]) => flags.filter(Boolean).length
    const before = count((await share(1000)).ann)
    for (let round = 0; round < 12; round++) {
      const { all, ann } = await share(round)
      const mean = count(ann) / ann.length
      const rows = all.map(({ tokens, logProbs }, i) =>
        stepSequence(Int32Array.of(5), tokens, { logProbs, constraint, advantage: (ann[i] ? 1 : 0) - mean }),
      )
      await trained.forwardBackward(rows, clippedSurrogate().native!({ iteration: 0, iterations: 1 })!)
      await trained.optimizerStep({ learningRate: 1e-2 })
    }
    const { all, ann } = await share(1001)
    expect(count(ann)).toBeGreaterThan(Math.max(before, 55))
    await expectSampled(trained, all, () => Int32Array.of(5))
    await trained.dispose()
  })

  it("survives preemption", async () => {
    const small = await NativePolicy.create(model, new Random(1), { ...options, kvCacheBytes: 1 })
    const prompt = (i: number) => Int32Array.from({ length: 10 }, (_, at) => at + i)
    const requests = Array.from({ length: 24 }, (_, i): SampleRequest => {
      return { prompt: prompt(i), maxTokens: 40, stopTokens: [256], key: [i, 7], constraint }
    })
    const all = await Promise.all(requests.map((request) => small.sample(request)))
    expect(small.statistics.preemptions).toBeGreaterThan(0)
    expect(await Promise.all(requests.map((request) => policy.sample(request)))).toEqual(all)
    await expectSampled(small, all, prompt)
    await small.dispose()
  })

  it("ends a completion at the end of the text, also without stop tokens", async () => {
    const { tokens, finishReason } = await policy.sample({
      ...{ prompt: Int32Array.of(1, 2, 3), maxTokens: 60, stopTokens: [], key: [0, 7], constraint },
    })
    expect(finishReason).toBe("stop")
    expect(tokens).toEqual((await sample(0)).tokens)
  })

  it("fails only its own request if no token is allowed", async () => {
    const offsets = bytes.offsets.map((offset, token) => (token > 98 ? offset - 1 : offset)) // nothing is a "b"
    const without = { bytes: bytes.bytes.filter((byte) => byte !== 98), offsets, endTokens: bytes.endTokens }
    const many = new Constraint(sequence(repeat(text("a"), 1, Number.POSITIVE_INFINITY), text("b")), without)
    const stuck = new Constraint(text("ab"), without)
    const request = { prompt: Int32Array.of(1), maxTokens: 20, stopTokens: [256], key: [1, 1] } as const
    const [fails, goesOn, other] = await Promise.allSettled([
      policy.sample({ ...request, constraint: stuck }),
      policy.sample({ ...request, constraint: many }),
      sample(3),
    ])
    expect(fails).toMatchObject({
      status: "rejected",
      reason: { code: "CONSTRAINT_FAILED", message: expect.stringContaining("No token of this vocabulary") },
    })
    expect(goesOn).toMatchObject({ status: "fulfilled", value: { finishReason: "length" } })
    expect(other).toMatchObject({ status: "fulfilled", value: { tokens: (await sample(3)).tokens } })
  })

  it("rejects stop tokens within its text", async () => {
    const request = { prompt: Int32Array.of(1), maxTokens: 60, key: [0, 7], constraint } as const
    await expect(policy.sample({ ...request, stopTokens: [256, 34] })).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: expect.stringContaining("stopTokens contains 34, which would end a text before its constraint does"),
    })
    expect((await policy.sample({ ...request, constraint: undefined, stopTokens: [256, 34] })).tokens.length).toBeGreaterThan(0) // biome-ignore format: one line
  })

  it("rejects invalid constraints, rows that violate them, and vocabularies of other models", async () => {
    await expect(
      policy.sample({ prompt: Int32Array.of(1), maxTokens: 4, stopTokens: [], key: [1, 1], constraint: {} }),
    ).rejects.toMatchObject({ code: "BAD_ARGUMENT" })
    const completion = (await sample(0)).tokens
    const right = stepSequence(Int32Array.of(1), completion, {
      constraint,
      advantage: 1,
      logProbs: new Float32Array(completion.length),
    })
    const lossOf = (row: Sequence) =>
      policy.forwardBackward([right, row], clippedSurrogate().native!({ iteration: 0, iterations: 1 })!)
    await lossOf(right)
    const gradient = await policy.tensor(lora ? adapted : "model.norm.weight", "gradients")
    expect(gradient.some((value) => value !== 0)).toBe(true)
    // A token that is not allowed, one after the end, and one of the model outside of the vocabulary.
    for (const wrong of [
      Int32Array.of(9, 9),
      Int32Array.of(...completion, 9),
      Int32Array.of(...completion.subarray(0, 1), 265),
    ]) {
      const row = stepSequence(Int32Array.of(1), wrong, {
        constraint,
        advantage: 1,
        logProbs: new Float32Array(wrong.length),
      })
      for (const refused of [policy.logProbs([right, row]), lossOf(row)])
        await expect(refused).rejects.toMatchObject({
          code: "BAD_ARGUMENT",
          message: expect.stringMatching(/^sequences\[1\]: token \d+ is not allowed by the grammar at its position\.$/),
        })
    }
    expect(await policy.tensor(lora ? adapted : "model.norm.weight", "gradients")).toEqual(gradient) // rejected before anything was touched
    await policy.clearGradients()
    const offsets = new Int32Array(300).fill(256)
    offsets.set(bytes.offsets)
    const larger = new Constraint(jsonSchema(schema), { ...bytes, offsets })
    await expect(
      policy.sample({ prompt: Int32Array.of(1), maxTokens: 4, stopTokens: [256], key: [1, 1], constraint: larger }),
    ).rejects.toMatchObject({ message: expect.stringContaining("use the tokenizer of the model") })
    const row = stepSequence(Int32Array.of(1), completion, { constraint: larger })
    await expect(policy.logProbs([row])).rejects.toMatchObject({
      message: expect.stringContaining("use the tokenizer of the model"),
    })
    expect((await sample(1)).finishReason).toBe("stop")
  })
})
