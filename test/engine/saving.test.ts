import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { Random } from "../../src/util/random.ts"
import { architectures, modelPath, readExpected, rolloutRows, surrogate, weightNames } from "./fixtures.ts"

let folder: string
const policies: NativePolicy[] = []
const opened = async (policy: Promise<NativePolicy>): Promise<NativePolicy> => {
  policies.push(await policy)
  return policies.at(-1)!
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-"))
})
afterEach(async () => {
  for (const policy of policies.splice(0)) await policy.dispose()
  await rm(folder, { recursive: true })
})

describe.each(architectures)("a saved %s", (name) => {
  it("opens as the same model, bit for bit", async () => {
    const policy = await opened(NativePolicy.open(modelPath(name)))
    await policy.save(folder)
    const again = await opened(NativePolicy.open(folder))
    expect(again.config).toEqual(policy.config)
    for (const weight of weightNames(readExpected(name)))
      expect(await again.tensor(weight)).toEqual(await policy.tensor(weight))
    const tokens = Int32Array.of(3, 1, 4, 1, 5)
    expect(await again.logits(tokens)).toEqual(await policy.logits(tokens))
  })

  it("continues training as without saving", async () => {
    const step = { learningRate: 3e-3, weightDecay: 0.1, maxGradientNorm: 0.5 }
    const policy = await opened(NativePolicy.open(modelPath(name)))
    const rows = await rolloutRows(policy, new Random(2))
    const train = async (policy: NativePolicy, steps: number): Promise<number[]> => {
      const losses: number[] = []
      for (let i = 0; i < steps; i++) {
        const { loss } = await policy.forwardBackward(rows, surrogate({ klWeight: 0.01, entropyWeight: 0.01 }))
        losses.push(loss, (await policy.optimizerStep(step)).gradientNorm)
      }
      return losses
    }
    await train(policy, 3)
    await policy.save(folder)
    const moments = join(folder, "optimizer")
    await mkdir(moments)
    await policy.saveOptimizer(join(moments, "model.safetensors"))
    const wanted = await train(policy, 3)

    const resumed = await opened(NativePolicy.open(folder))
    await resumed.loadOptimizer(moments, 3)
    expect(resumed.optimizerSteps).toBe(3)
    expect(await train(resumed, 3)).toEqual(wanted)
    for (const weight of weightNames(readExpected(name)))
      expect(await resumed.tensor(weight)).toEqual(await policy.tensor(weight))
  })
})

describe("saving", () => {
  it("keeps further fields of config.json, and copies the listed files", async () => {
    const policy = await opened(NativePolicy.open(modelPath("qwen3")))
    const tokenizer = join(folder, "tokenizer.json")
    await writeFile(tokenizer, "{}")
    const target = join(folder, "saved")
    await mkdir(target)
    await policy.save(target, { files: [tokenizer] })
    expect((await readdir(target)).sort()).toEqual(["config.json", "gigpo.json", "model.safetensors", "tokenizer.json"])
    const config = JSON.parse(await readFile(join(target, "config.json"), "utf8"))
    expect(config).toMatchObject({ eos_token_id: 2, architectures: ["Qwen3ForCausalLM"], torch_dtype: "float32" })
  })

  it("creates a missing folder", async () => {
    const policy = await opened(NativePolicy.open(modelPath("qwen3")))
    await policy.save(join(folder, "new", "model"))
    expect(await readdir(join(folder, "new", "model"))).toContain("model.safetensors")
  })

  it("is rejected if a file has the path of the folder", async () => {
    const policy = await opened(NativePolicy.open(modelPath("qwen3")))
    await writeFile(join(folder, "taken"), "")
    await expect(policy.save(join(folder, "taken"))).rejects.toMatchObject({ code: "FILE_EXISTS" })
  })
})

describe("a new model", () => {
  const config = {
    architecture: "Qwen2",
    vocabularySize: 500,
    hiddenSize: 64,
    intermediateSize: 96,
    layers: 2,
    heads: 4,
    keyValueHeads: 2,
    headSize: 16,
    rmsNormEpsilon: 1e-6,
    ropeTheta: 1e4,
    tieEmbeddings: false,
    queryKeyValueBias: true,
    queryKeyNorm: false,
    maxPositions: 64,
  } as const

  const moments = (values: Float32Array) => {
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length
    return { mean, deviation: Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length) }
  }

  it("has normal matrices of the given deviation, norms of 1 and biases of 0", async () => {
    const policy = await opened(NativePolicy.create(config, new Random(4), { deviation: 0.05 }))
    for (const [weight, deviation] of [
      ["model.embed_tokens.weight", 0.05],
      ["lm_head.weight", 0.05],
      ["model.layers.1.mlp.up_proj.weight", 0.05],
      // Into the residual stream: by 1 / √(2 · layers).
      ["model.layers.0.self_attn.o_proj.weight", 0.025],
      ["model.layers.1.mlp.down_proj.weight", 0.025],
    ] as const) {
      const found = moments(await policy.tensor(weight))
      expect(found.deviation / deviation, weight).toBeCloseTo(1, 1)
      expect(Math.abs(found.mean), weight).toBeLessThan(deviation / 10)
    }
    expect(new Set(await policy.tensor("model.layers.1.post_attention_layernorm.weight"))).toEqual(new Set([1]))
    expect(new Set(await policy.tensor("model.layers.0.self_attn.k_proj.bias"))).toEqual(new Set([0]))
  })

  it("is determined by the seed", async () => {
    const [one, same, other] = await Promise.all(
      [5, 5, 6].map((seed) => opened(NativePolicy.create(config, new Random(seed)))),
    )
    const weights = (policy: NativePolicy) => policy.tensor("model.layers.0.self_attn.q_proj.weight")
    expect(await weights(same!)).toEqual(await weights(one!))
    expect(await weights(other!)).not.toEqual(await weights(one!))
  })
})
