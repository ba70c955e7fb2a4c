import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { Random } from "../../src/util/random.ts"
import {
  adapterPath,
  adapters,
  crossEntropy,
  modelPath,
  readExpected,
  relativeError,
  rolloutRows,
  surrogate,
  weightNames,
} from "./fixtures.ts"

const tokens = Int32Array.of(3, 1, 4, 1, 5, 9, 2, 6)
const lora = { rank: 4, alpha: 6 }
const queryA = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"
const queryB = queryA.replace("lora_A", "lora_B")

let folder: string
const policies: NativePolicy[] = []
const opened = async (policy: Promise<NativePolicy>): Promise<NativePolicy> => {
  policies.push(await policy)
  return policies.at(-1)!
}
const open = (...given: Parameters<typeof NativePolicy.open>) => opened(NativePolicy.open(...given))

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-adapter-"))
})
afterEach(async () => {
  for (const policy of policies.splice(0)) await policy.dispose()
  await rm(folder, { recursive: true })
})

/** Some steps of training, from which every pair comes out changed. */
async function train(policy: NativePolicy, steps = 4): Promise<number[]> {
  const rows = await rolloutRows(policy, new Random(2))
  const losses: number[] = []
  for (let i = 0; i < steps; i++) {
    losses.push((await policy.forwardBackward(rows, surrogate({ entropyWeight: 0.01 }))).loss)
    losses.push((await policy.optimizerStep({ learningRate: 1e-2 })).gradientNorm)
  }
  return losses
}

// What PEFT computes in float64 (scripts/fixtures) is the truth, as it is of whole models.
describe.each(adapters)("a PEFT adapter of %s", (name) => {
  const expected = readExpected(name, adapterPath(name))
  const weights = weightNames(expected)
  let policy: NativePolicy
  beforeAll(async () => {
    policy = await NativePolicy.open(adapterPath(name), { base: modelPath(name) })
  })
  afterAll(() => policy.dispose())

  const logitsError = async (of: NativePolicy) => {
    const logits: number[] = []
    for (const row of expected.logits) logits.push(...(await of.logits(row)))
    return relativeError(logits, expected.tensors.get("logits")!)
  }

  it("computes the expected logits, as an adapter and merged", async () => {
    expect(weights).toHaveLength(2 * 7 * policy.config.layers)
    expect(await logitsError(policy)).toBeLessThan(1e-5)
    await policy.save(join(folder, "merged"))
    expect(await logitsError(await open(join(folder, "merged")))).toBeLessThan(1e-5)
  })

  it("computes the expected loss and the gradient of every pair", async () => {
    for (const [index, { loss, rows, report }] of expected.policy.entries()) {
      await policy.clearGradients()
      expect((await policy.forwardBackward(rows, loss)).loss).toBeCloseTo(report.loss, 5)
      for (const weight of weights) {
        const wanted = expected.tensors.get(`policy.${index}.${weight}`)!
        expect(relativeError(await policy.tensor(weight, "gradients"), wanted), weight).toBeLessThan(1e-4)
      }
    }
    await policy.clearGradients()
  })

  // Last: it moves the weights.
  it("takes ten AdamW steps, which leave the model unchanged", async () => {
    const { step, rows, losses, gradientNorms } = expected.adamw
    const frozen = "model.layers.1.self_attn.q_proj.weight"
    const before = await policy.tensor(frozen)
    for (const [index, loss] of losses.entries()) {
      expect((await policy.forwardBackward(rows, crossEntropy)).loss, `loss ${index}`).toBeCloseTo(loss, 4)
      const { gradientNorm } = await policy.optimizerStep(step)
      expect(Math.abs(gradientNorm / gradientNorms[index]! - 1), `norm ${index}`).toBeLessThan(3e-4)
    }
    for (const weight of weights) {
      const [found, wanted] = [await policy.tensor(weight), expected.tensors.get(`adamw.${weight}`)!]
      const difference = Math.hypot(...found.map((value, index) => value - wanted[index]!))
      expect(difference / Math.hypot(...wanted), weight).toBeLessThan(2e-4)
    }
    expect(await policy.tensor(frozen)).toEqual(before)
  })
})

describe("a new adapter", () => {
  it("has no effect: A is uniform within 1/√in, B is 0", async () => {
    const [plain, policy] = [await open(modelPath("qwen3")), await open(modelPath("qwen3"), { lora })]
    expect(policy.lora).toEqual(lora)
    expect(await policy.logits(tokens)).toEqual(await plain.logits(tokens))
    const [a, b] = [await policy.tensor(queryA), await policy.tensor(queryB)]
    expect(b.every((value) => value === 0)).toBe(true)
    const bound = 1 / Math.sqrt(policy.config.hiddenSize)
    expect(a).toHaveLength(4 * policy.config.hiddenSize)
    expect(a.every((value) => Math.abs(value) <= bound)).toBe(true)
    // Of a uniform distribution.
    const deviation = Math.sqrt(a.reduce((sum, value) => sum + value * value, 0) / a.length)
    expect(deviation / (bound / Math.sqrt(3))).toBeGreaterThan(0.85)
    expect(deviation / (bound / Math.sqrt(3))).toBeLessThan(1.15)
  })

  it("is determined by the seed, and differs between layers", async () => {
    const a = async (seed: number, name = queryA) =>
      await (await open(modelPath("qwen3"), { lora: { ...lora, seed } })).tensor(name)
    expect(await a(3)).toEqual(await a(3))
    expect(await a(3)).not.toEqual(await a(4))
    expect(await a(3)).not.toEqual(await a(3, queryA.replace("layers.0", "layers.1")))
  })

  it("of a new model is determined by its random generator", async () => {
    const { config } = await open(modelPath("qwen3"))
    const create = (seed: number) => opened(NativePolicy.create(config, new Random(seed), { lora }))
    expect(await (await create(1)).tensor(queryA)).toEqual(await (await create(1)).tensor(queryA))
    expect(await (await create(1)).tensor(queryA)).not.toEqual(await (await create(2)).tensor(queryA))
  })

  it("is discarded if its opening is aborted, while it is initialized or read", async () => {
    const stored = join(folder, "adapter")
    const policy = await open(modelPath("qwen3"), { lora })
    await policy.saveAdapter(stored)
    // How often opening looks at its signal, and what becomes of it where that is aborted at the `last` look.
    const looks = async (openWith: (signal: AbortSignal) => Promise<NativePolicy>, last = Number.POSITIVE_INFINITY) => {
      const controller = new AbortController()
      const { signal } = controller
      let count = 0
      signal.throwIfAborted = () => {
        if (++count === last) controller.abort(new Error("enough"))
        AbortSignal.prototype.throwIfAborted.call(signal)
      }
      await opened(openWith(signal))
      return count
    }
    const ofModel = await looks((signal) => NativePolicy.open(modelPath("qwen3"), { signal }))
    const made = await looks((signal) => NativePolicy.open(modelPath("qwen3"), { lora, signal }))
    const read = await looks((signal) => NativePolicy.open(stored, { signal }))
    expect(ofModel).toBeLessThan(made)
    expect(made).toBeLessThan(read)
    for (const last of [ofModel + 1, made + 1, read]) {
      const given = (signal: AbortSignal) => NativePolicy.open(stored, { signal })
      await expect(looks(given, last), String(last)).rejects.toThrow("enough")
    }
    const { config } = policy
    const create = (signal: AbortSignal) => NativePolicy.create(config, new Random(1), { lora, signal })
    await expect(looks(create, await looks(create))).rejects.toThrow("enough")
  })

  it("has alpha 2 × rank by default", async () => {
    expect((await open(modelPath("qwen3"), { lora: { rank: 3 } })).lora).toEqual({ rank: 3, alpha: 6 })
  })

  it("is frozen as the reference policy without a second model", async () => {
    const policy = await open(modelPath("qwen3"), { lora, reference: true })
    const rows = await rolloutRows(policy, new Random(3))
    const before = await policy.logProbs(rows)
    await policy.reference.freeze()
    await train(policy)
    expect(await policy.logProbs(rows, { model: "reference" })).toEqual(before)
    expect(await policy.logProbs(rows)).not.toEqual(before)
    expect(policy.memoryPlan.reference).toBeLessThan(policy.parameters * 4 * 0.5)
  })
})

describe("a trained adapter", () => {
  it("is restored from its folder bit for bit, and continues training as without interruption", async () => {
    const policy = await open(modelPath("qwen2-untied"), { lora })
    await train(policy)
    await policy.saveAdapter(folder)
    await mkdir(join(folder, "optimizer"))
    await policy.saveOptimizer(join(folder, "optimizer", "model.safetensors"))
    expect((await readdir(folder)).sort()).toEqual([
      "adapter_config.json",
      "adapter_model.safetensors",
      "gigpo.json",
      "optimizer",
    ])
    const again = await open(folder)
    expect(again.lora).toEqual(lora)
    expect(await again.logits(tokens)).toEqual(await policy.logits(tokens))
    await again.loadOptimizer(join(folder, "optimizer"), 4)
    expect(await train(again)).toEqual(await train(policy))
    expect(await again.tensor(queryB)).toEqual(await policy.tensor(queryB))
  })

  it("is merged into an equivalent model, up to rounding", async () => {
    const policy = await open(modelPath("qwen3"), { lora })
    const start = await policy.logits(tokens)
    await train(policy)
    await policy.save(folder)
    expect((await readdir(folder)).sort()).toEqual(["config.json", "gigpo.json", "model.safetensors"])
    const merged = await (await open(folder)).logits(tokens)
    expect(relativeError(merged, await policy.logits(tokens))).toBeLessThan(1e-5)
    expect(relativeError(merged, start)).toBeGreaterThan(0.01)
  })

  it("has gradients only for its pairs", async () => {
    const policy = await open(modelPath("qwen3"), { lora })
    await train(policy, 1)
    await expect(policy.tensor("model.norm.weight", "gradients")).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: "model.norm.weight has no gradient: only the adapter is trained.",
    })
    expect(await policy.tensor("model.norm.weight")).toHaveLength(policy.config.hiddenSize)
    await expect(policy.tensor("model.nothing")).rejects.toMatchObject({ code: "BAD_ARGUMENT" })
  })
})

describe("an adapter is rejected", () => {
  async function refused(action: () => Promise<unknown>, message: RegExp, code = "BAD_MODEL"): Promise<void> {
    await expect(action()).rejects.toMatchObject({ code, message: expect.stringMatching(message) })
  }

  it("for a model with different weights", async () => {
    const base = join(folder, "base")
    await cp(modelPath("qwen3"), base, { recursive: true })
    const policy = await open(base, { lora })
    await policy.saveAdapter(join(folder, "adapter"))
    await open(join(folder, "adapter"))
    const bytes = await readFile(join(base, "model.safetensors"))
    bytes[bytes.length - 1]! ^= 1
    await writeFile(join(base, "model.safetensors"), bytes)
    await refused(() => NativePolicy.open(join(folder, "adapter")), /was trained on another base model than .*base/)
  })

  it("if its base model is missing, unless another path is given", async () => {
    const base = join(folder, "base")
    await cp(modelPath("qwen3"), base, { recursive: true })
    const policy = await open(base, { lora })
    await policy.saveAdapter(join(folder, "adapter"))
    await rm(base, { recursive: true })
    await refused(() => NativePolicy.open(join(folder, "adapter")), /names the base model .*base, which does not exist/)
    const again = await open(join(folder, "adapter"), { base: modelPath("qwen3") })
    expect(await again.logits(tokens)).toEqual(await policy.logits(tokens))
  })

  it("for a model of another size", async () => {
    const policy = await open(modelPath("qwen3"), { lora })
    await policy.saveAdapter(folder)
    const other = await open(modelPath("qwen3"), { lora: { rank: 5, alpha: 6 } })
    await refused(
      () => other.loadAdapter(folder),
      /has rank 4 and alpha 6, but the adapter of the policy has rank 5 and alpha 6/,
    )
    const asked = () => NativePolicy.open(folder, { lora: { rank: 4, alpha: 7 } })
    await refused(asked, /has rank 4 and alpha 6, not rank 4 and alpha 7/, "BAD_ARGUMENT")
    const moments = join(folder, "optimizer")
    await mkdir(moments)
    await train(policy, 1)
    await policy.saveOptimizer(join(moments, "model.safetensors"))
    await refused(() => other.loadOptimizer(moments, 1), /does not have the shape of this model or adapter/)
  })

  it("for another model", async () => {
    await (await open(modelPath("qwen2-untied"), { lora })).saveAdapter(folder)
    const policy = await open(modelPath("qwen3"), { lora })
    const before = await policy.tensor(queryA)
    await refused(() => policy.loadAdapter(folder), /lora_A.weight" of shape \[4, 48\] instead of \[4, 40\]/)
    expect(await policy.tensor(queryA)).toEqual(before)
  })

  it.each<[Record<string, unknown>, RegExp]>([
    [{ peft_type: "IA3" }, /peft_type is "IA3"; only "LORA"/],
    [{ use_rslora: "yes" }, /use_rslora is "yes"/],
    [{ use_dora: true }, /use_dora is set/],
    [{ bias: "some" }, /bias is "some"/],
    [{ task_type: "SEQ_CLS" }, /task_type is "SEQ_CLS"/],
    [{ rank_pattern: { q_proj: 8 } }, /lora_A.weight" of shape \[5, 40\] instead of \[8, 40\]/],
    [{ rank_pattern: { q_proj: 1.5 } }, /rank_pattern of "q_proj" is 1.5/],
    [{ alpha_pattern: { q_proj: 0 } }, /alpha_pattern of "q_proj" is 0/],
    [{ alpha_pattern: 3 }, /alpha_pattern must be an object/],
    [{ rank_pattern: { "(?<!x)(?>q)_proj": 2 } }, /rank_pattern holds a regular expression that is not supported/],
    [
      { modules_to_save: ["lm_head"] },
      /lacks "base_model.model.lm_head.weight", which its adapter_config.json requires/,
    ],
    [{ modules_to_save: ["mlp"] }, /modules_to_save names "model.layers.0.mlp"; only the embedding/],
    [{ modules_to_save: ["q_proj"] }, /modules_to_save names "model.layers.0.self_attn.q_proj"/],
    [
      { target_modules: ["q_proj", "lm_head"] },
      /target_modules matches "lm_head"; LoRA matrices of the embedding or the head/,
    ],
    [{ target_modules: ["embed_tokens"] }, /target_modules matches "model.embed_tokens"/],
    [{ target_modules: ["mlp"] }, /target_modules matches "model.layers.0.mlp", which is not a linear layer/],
    [{ target_modules: ["c_attn"] }, /no projection of the model matches target_modules/],
    [{ target_modules: [] }, /no projection of the model/],
    [{ target_modules: 3 }, /target_modules is 3/],
    [{ target_modules: ["q_proj", "v_proj"] }, /holds ".*_proj.*", which adapter_config.json does not describe/],
    [
      { target_modules: ".*_proj", layers_to_transform: [1] },
      /cannot be used where target_modules is a regular expression/,
    ],
    [{ layers_pattern: "layers" }, /layers_pattern needs layers_to_transform/],
    [{ layers_to_transform: [1] }, /holds ".*layers.0.*", which adapter_config.json does not describe/],
    [{ layers_to_transform: ["x"] }, /layers_to_transform is an object or a list/],
    [{ lora_dropout: "x" }, /lora_dropout is "x"/],
    [{ r: 0 }, /r is 0/],
    [{ lora_alpha: "x" }, /lora_alpha is "x"/],
    [{ base_model_name_or_path: 3 }, /base_model_name_or_path must be a string/],
  ])("with %j in its configuration", async (change, message) => {
    await cp(adapterPath("qwen3"), folder, { recursive: true })
    const path = join(folder, "adapter_config.json")
    await writeFile(path, JSON.stringify({ ...JSON.parse(await readFile(path, "utf8")), ...change }))
    await refused(() => NativePolicy.open(folder, { base: modelPath("qwen3") }), message)
  })

  it("if files are missing or it is not an adapter", async () => {
    await cp(adapterPath("qwen3"), folder, { recursive: true })
    await rm(join(folder, "adapter_model.safetensors"))
    await refused(() => NativePolicy.open(folder, { base: modelPath("qwen3") }), /no adapter_model.safetensors/)
    await writeFile(join(folder, "adapter_config.json"), "{")
    await refused(() => NativePolicy.open(folder, { base: modelPath("qwen3") }), /is not valid JSON/)
    const policy = await open(modelPath("qwen3"))
    await refused(() => policy.saveAdapter(join(folder, "new")), /has no adapter; open it with lora/, "BAD_ARGUMENT")
  })
})

describe("other ways of training", () => {
  it("recompute levels change only the memory", async () => {
    const results = []
    for (const recompute of ["none", "norms", "mlp", "block"] as const) {
      const policy = await open(modelPath("qwen3"), { recompute })
      results.push({ losses: await train(policy), memory: policy.memoryPlan.activations })
    }
    for (const { losses } of results) expect(losses).toEqual(results[0]!.losses)
    for (const [index, { memory }] of results.slice(1).entries()) expect(memory).toBeLessThan(results[index]!.memory)
  })

  it("moments in bfloat16 take half the memory, give nearly the same updates, and are stored exactly", async () => {
    const full = await open(modelPath("qwen3"))
    const half = await open(modelPath("qwen3"), { optimizerPrecision: "bfloat16" })
    expect(half.memoryPlan.moments / full.memoryPlan.moments).toBeCloseTo(0.5, 2)
    const [wanted, found] = [await train(full), await train(half)]
    expect(found).not.toEqual(wanted)
    expect(relativeError(found, wanted)).toBeLessThan(0.05)
    await half.save(folder)
    await mkdir(join(folder, "optimizer"))
    await half.saveOptimizer(join(folder, "optimizer", "model.safetensors"))
    const again = await open(folder, { optimizerPrecision: "bfloat16" })
    await again.loadOptimizer(join(folder, "optimizer"), 4)
    expect(await train(again)).toEqual(await train(half))
  })

  it("a policy that only samples cannot be trained", async () => {
    const policy = await open(modelPath("qwen3"), { training: false })
    const refused = { code: "BAD_ARGUMENT", message: expect.stringMatching(/training: false/) }
    await expect(train(policy)).rejects.toMatchObject(refused)
    await expect(policy.optimizerStep({ learningRate: 1 })).rejects.toMatchObject(refused)
    await expect(policy.store.checkpoint(join(folder, "sampled"))).rejects.toMatchObject(refused)
    await expect(policy.store.restore({ optimizerSteps: 1 }, modelPath("qwen3"))).rejects.toMatchObject(refused)
    expect(policy.memoryPlan).toMatchObject({ gradients: 0, moments: 0, activations: 0 })
  })
})
