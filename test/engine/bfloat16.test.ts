import { mkdtemp } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { memoryPlan, type NativePolicyOptions } from "../../src/engine/native/options.ts"
import { stepSequence } from "../../src/engine/sequence.ts"
import { readModelConfig } from "../../src/model-files/model-config.ts"
import { Random } from "../../src/util/random.ts"
import {
  allLogits,
  architectures,
  crossEntropy,
  gradients,
  logProbsOf,
  modelPath,
  normError,
  randomTokens,
  readExpected,
  readTensors,
  rolloutRows,
  weightNames,
} from "./fixtures.ts"

// The CPU in bfloat16, held to what transformers computes in float32 and in bfloat16.

const half = { device: "cpu", precision: "bfloat16" } as const

describe.each(architectures)("the model %s in bfloat16 on the CPU", (name) => {
  const expected = readExpected(name)

  it("has an error comparable to that of transformers", async () => {
    const truth = expected.tensors.get("logits")!
    const theirs = normError(readTensors(`${modelPath(name)}/bf16.safetensors`).get("logits")!, truth)
    await using policy = await NativePolicy.open(modelPath(name), half)
    const ours = normError(await allLogits(policy, expected), truth)
    expect(ours).toBeLessThan(1.2 * theirs)
    expect(ours).toBeGreaterThan(0.01 * theirs) // it is bfloat16 that was asked for
  })

  // Without clipping: a ratio at its bound would fall to one side or the other by chance. Models as narrow as these average little
  // out: the error of transformers in bfloat16 is the reference.
  it("has gradients close to float32, with an error comparable to that of transformers", async () => {
    const { rows } = expected.adamw
    const found: { loss: number; gradients: Map<string, Float32Array> }[] = []
    for (const precision of ["float32", "bfloat16"] as const) {
      await using policy = await NativePolicy.open(modelPath(name), { device: "cpu", precision })
      const { loss } = await policy.forwardBackward(rows, crossEntropy)
      found.push({ loss, gradients: await gradients(policy, weightNames(expected)) })
    }
    const [wanted, rounded] = [found[0]!, found[1]!]
    expect(Math.abs(rounded.loss / wanted.loss - 1)).toBeLessThan(0.01)
    const theirs = readTensors(`${modelPath(name)}/bf16.safetensors`)
    const flat = (of: (weight: string) => Float32Array, weights: readonly string[]) =>
      weights.flatMap((weight) => Array.from(of(weight)))
    const errors = (weights: readonly string[]) => {
      const truth = flat((weight) => wanted.gradients.get(weight)!, weights)
      return {
        ours: normError(
          flat((weight) => rounded.gradients.get(weight)!, weights),
          truth,
        ),
        theirs: normError(
          flat((weight) => theirs.get(`gradient.${weight}`)!, weights),
          truth,
        ),
      }
    }
    const names = weightNames(expected)
    const whole = errors(names)
    expect(whole.ours).toBeLessThan(1.2 * whole.theirs)
    expect(whole.ours).toBeGreaterThan(0.01 * whole.theirs) // it is bfloat16
    // Of few numbers, a bias's say, one may come out well by chance.
    for (const weight of names) {
      const one = errors([weight])
      expect(one.ours, weight).toBeLessThan(1.2 * Math.max(one.theirs, whole.theirs))
    }
  })

  it("scores sampled tokens with their sampled log-probabilities", async () => {
    await using policy = await NativePolicy.open(modelPath(name), half)
    const random = new Random(8)
    const prompts = Array.from({ length: 6 }, (_, i) => randomTokens(3 + 7 * i, random))
    const completions = await Promise.all(
      prompts.map((prompt, i) => policy.sample({ prompt, maxTokens: 20, stopTokens: [], key: [i, 5] })),
    )
    const scored = await logProbsOf(
      policy,
      completions.map(({ tokens }, i) => stepSequence(prompts[i]!, tokens)),
    )
    for (const [i, { logProbs }] of completions.entries()) expect(normError(scored[i]!, logProbs)).toBeLessThan(0.004)
  })
})

describe("training in bfloat16 on the CPU", () => {
  const train = async (options: NativePolicyOptions, work?: (policy: NativePolicy) => Promise<void>) => {
    await using policy = await NativePolicy.open(modelPath("qwen3"), options)
    const rows = await rolloutRows(policy, new Random(3))
    const losses: number[] = []
    for (let step = 0; step < 10; step++) {
      losses.push((await policy.forwardBackward(rows, crossEntropy)).loss)
      await policy.optimizerStep({ learningRate: 1e-3 })
    }
    await work?.(policy)
    return losses
  }

  it.each<NativePolicyOptions>([{}, { optimizerPrecision: "bfloat16" }, { lora: { rank: 4 } }])(
    "goes the way of float32, with %j",
    async (options) => {
      const [found, wanted] = [await train({ ...options, ...half }), await train({ ...options, device: "cpu" })]
      expect(found.at(-1)!).toBeLessThan(found[0]!)
      const learned = wanted.map((loss) => wanted[0]! - loss)
      expect(
        normError(
          found.map((loss) => found[0]! - loss),
          learned,
        ),
      ).toBeLessThan(0.05)
    },
  )

  it("keeps and saves float32 weights, in which small steps accumulate", async () => {
    const folder = join(await mkdtemp(join(tmpdir(), "gigpo-bfloat16-")), "model")
    const name = "model.layers.0.mlp.down_proj.weight"
    let weight: Float32Array = new Float32Array()
    await train(half, async (policy) => {
      weight = await policy.tensor(name)
      await policy.save(folder)
    })
    const rounded = new Uint32Array(weight.buffer).filter((bits) => (bits & 0xffff) === 0)
    expect(rounded.length).toBeLessThan(weight.length / 100)
    await using again = await NativePolicy.open(folder, half)
    expect(await again.tensor(name)).toEqual(weight)
  })

  it("is not available for a policy that only samples, which has no float32 copy and saves its weights as they are", async () => {
    const folder = join(await mkdtemp(join(tmpdir(), "gigpo-bfloat16-")), "model")
    const name = "model.layers.0.mlp.down_proj.weight"
    await using trained = await NativePolicy.open(modelPath("qwen3"), half)
    await using policy = await NativePolicy.open(modelPath("qwen3"), { ...half, training: false })
    expect(trained.memoryPlan.weights - policy.memoryPlan.weights).toBe(4 * policy.parameters)
    expect(await policy.logits(randomTokens(20, new Random(1)))).toEqual(
      await trained.logits(randomTokens(20, new Random(1))),
    )
    await policy.save(folder)
    const saved = readTensors(join(folder, "model.safetensors")).get(name)!
    expect(new Uint32Array(saved.buffer, saved.byteOffset, saved.length).every((bits) => (bits & 0xffff) === 0)).toBe(
      true,
    )
    expect(normError(saved, await trained.tensor(name))).toBeLessThan(2 ** -9)
  })

  it("uses the planned memory", async () => {
    const config = await readModelConfig(modelPath("qwen3"))
    await using policy = await NativePolicy.open(modelPath("qwen3"), half)
    const [found, single] = [memoryPlan(config, half), memoryPlan(config, { ...half, precision: "float32" })]
    expect(policy.memoryPlan.weights).toBe(found.weights)
    expect(found.weights - single.weights).toBe(2 * policy.parameters) // bfloat16 beside float32
    expect(found.gradients).toBe(single.gradients)
    expect(found.activations).toBeLessThan(0.8 * single.activations)
    expect(found.sampling).toBeLessThan(single.sampling)
  })
})
