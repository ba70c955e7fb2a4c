import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import {
  type ModelConfig,
  parseModelConfig,
  readConfigJson,
  readModelConfig,
} from "../../src/model-files/model-config.ts"
import { checkTensors, countParameters, tensorShapes } from "../../src/model-files/model-tensors.ts"
import type { TensorFiles, TensorInfo } from "../../src/model-files/safetensors.ts"
import { writeModelConfig } from "../../src/model-files/write-config.ts"
import { GigpoError } from "../../src/util/errors.ts"
import { gemma3, gemma3Older, llama32, mistral, qwen3, qwen25, smollm3 } from "./published-configs.ts"

const badModel = (pattern: RegExp) =>
  expect.objectContaining({ code: "BAD_MODEL", message: expect.stringMatching(pattern) })

const mixtures = [
  ["Qwen2Moe", "qwen2_moe", { num_experts: 60, num_experts_per_tok: 4 }, 60],
  ["Qwen3Moe", "qwen3_moe", { num_experts: 128, num_experts_per_tok: 8 }, 128],
  ["Mixtral", "mixtral", { num_local_experts: 8, num_experts_per_tok: 2 }, 8],
  ["GptOss", "gpt_oss", { num_local_experts: 32, experts_per_token: 4 }, 32],
  ["DeepseekV3", "deepseek_v3", { n_routed_experts: 256, n_shared_experts: 1 }, 256],
] as const
const sliding = (layers: number) => Array<string>(layers).fill("sliding_attention")
const models = [qwen25, qwen3, llama32]
const yarn = { rope_type: "yarn", factor: 4, original_max_position_embeddings: 32768 }

const tiny: ModelConfig = {
  architecture: "Qwen2",
  vocabularySize: 11,
  hiddenSize: 8,
  intermediateSize: 12,
  layers: 1,
  heads: 2,
  keyValueHeads: 1,
  headSize: 4,
  rmsNormEpsilon: 1e-6,
  ropeTheta: 10_000,
  tieEmbeddings: false,
  queryKeyValueBias: true,
  queryKeyNorm: false,
  maxPositions: 32,
}

describe("parseModelConfig", () => {
  it("reads Qwen2", () => {
    expect(parseModelConfig(qwen25)).toEqual({
      architecture: "Qwen2",
      vocabularySize: 151936,
      hiddenSize: 896,
      intermediateSize: 4864,
      layers: 24,
      heads: 14,
      keyValueHeads: 2,
      headSize: 64,
      rmsNormEpsilon: 1e-6,
      ropeTheta: 1e6,
      tieEmbeddings: true,
      queryKeyValueBias: true,
      queryKeyNorm: false,
      maxPositions: 32768,
    })
  })

  it("reads Qwen3, whose heads are wider than hidden size / heads", () => {
    const config = parseModelConfig(qwen3)
    expect(config).toMatchObject({ architecture: "Qwen3", headSize: 128, queryKeyNorm: true, queryKeyValueBias: false })
    expect(config).not.toHaveProperty("ropeScaling")
  })

  it("reads Llama 3 with its rescaled rotary frequencies", () => {
    expect(parseModelConfig(llama32)).toMatchObject({
      architecture: "Llama",
      ropeTheta: 500_000,
      ropeScaling: {
        type: "llama3",
        factor: 32,
        lowFrequencyFactor: 1,
        highFrequencyFactor: 4,
        originalMaxPositions: 8192,
      },
      queryKeyNorm: false,
      queryKeyValueBias: false,
    })
  })

  it.each(models)("reads the spelling of transformers 5 like that of 4: $model_type", (json) => {
    const { rope_theta, ...rest } = json
    const scaling = "rope_scaling" in rest ? rest.rope_scaling : null
    const parameters = { rope_theta, rope_type: "default", ...scaling }
    const { rope_scaling, ...five } = { rope_scaling: undefined, ...rest }
    const layer_types = Array.from({ length: json.num_hidden_layers }, () => "full_attention")
    expect(parseModelConfig({ ...five, rope_parameters: parameters, layer_types })).toEqual(parseModelConfig(json))
  })

  it("fills missing fields as transformers does", () => {
    expect(parseModelConfig({ model_type: "qwen2" })).toMatchObject({
      vocabularySize: 151936,
      hiddenSize: 4096,
      intermediateSize: 22016,
      layers: 32,
      heads: 32,
      keyValueHeads: 32,
      headSize: 128,
      rmsNormEpsilon: 1e-6,
      ropeTheta: 10_000,
      tieEmbeddings: false,
      maxPositions: 32768,
    })
    expect(parseModelConfig({ model_type: "qwen3", hidden_size: 2048 })).toMatchObject({ headSize: 128 })
    expect(parseModelConfig({ model_type: "llama", num_attention_heads: 16 })).toMatchObject({
      vocabularySize: 32000,
      intermediateSize: 11008,
      keyValueHeads: 16,
      headSize: 256,
      maxPositions: 2048,
    })
  })

  it("takes null key-value heads for as many as query heads, unlike missing ones", () => {
    expect(
      parseModelConfig({ model_type: "qwen2", num_attention_heads: 64, num_key_value_heads: null }).keyValueHeads,
    ).toBe(64)
    expect(parseModelConfig({ model_type: "qwen2", num_attention_heads: 64 }).keyValueHeads).toBe(32)
  })

  it("takes the original length of rescaled positions from the places transformers takes it from", () => {
    const { original_max_position_embeddings: _, ...scaling } = llama32.rope_scaling
    const lengthOf = (json: object) => parseModelConfig({ ...llama32, ...json }).ropeScaling?.originalMaxPositions
    expect(lengthOf({ rope_scaling: scaling })).toBe(131072)
    expect(lengthOf({ original_max_position_embeddings: 4096 })).toBe(4096)
  })

  it("accepts the old name of the rope type", () => {
    const { rope_type: type, ...scaling } = llama32.rope_scaling
    expect(parseModelConfig({ ...llama32, rope_scaling: { type, ...scaling } })).toEqual(parseModelConfig(llama32))
  })

  it("reads YaRN, with the factor of cosines and sines that transformers infers", () => {
    const scalingOf = (change: object) =>
      parseModelConfig({ ...qwen25, rope_scaling: { ...yarn, ...change } }).ropeScaling
    const inferred = 0.1 * Math.log(4) + 1
    const whole = { type: "yarn", factor: 4, betaFast: 32, betaSlow: 1, truncate: true, originalMaxPositions: 32768 }
    expect(scalingOf({})).toEqual({ ...whole, attentionFactor: inferred })
    expect(scalingOf({ mscale: 1, beta_fast: null, beta_slow: 0 })).toEqual({ ...whole, attentionFactor: inferred })
    expect(scalingOf({ mscale: 1, mscale_all_dim: 1 })).toEqual({ ...whole, attentionFactor: 1 })
    expect(scalingOf({ mscale: 2, mscale_all_dim: 1 })).toMatchObject({
      attentionFactor: (0.2 * Math.log(4) + 1) / inferred,
    })
    const own = {
      attention_factor: 1.5,
      beta_fast: 16,
      beta_slow: 2,
      truncate: false,
      type: "yarn",
      rope_type: undefined,
    }
    expect(scalingOf(own)).toEqual({ ...whole, attentionFactor: 1.5, betaFast: 16, betaSlow: 2, truncate: false })
    const ratio = { factor: null, original_max_position_embeddings: 4096 }
    expect(scalingOf(ratio)).toMatchObject({ factor: 8, originalMaxPositions: 4096 })
    expect(scalingOf({ factor: 0.5 })).toMatchObject({ attentionFactor: 1 })
  })

  const windowsOf = (json: object) => parseModelConfig(json).layerTable?.map(({ window }) => window)

  it("reads Mistral, whose layers all have a window if any has", () => {
    expect(parseModelConfig(mistral)).toMatchObject({ architecture: "Mistral", keyValueHeads: 8, headSize: 128 })
    expect(windowsOf(mistral)).toEqual(Array(32).fill(4096))
    expect(windowsOf({ ...mistral, sliding_window: undefined })).toEqual(Array(32).fill(4096))
    expect(parseModelConfig({ ...mistral, sliding_window: null })).not.toHaveProperty("layerTable")
  })

  it("reads the windows of Qwen by layer_types, or from max_window_layers on", () => {
    const windows = { ...qwen25, use_sliding_window: true, sliding_window: 128 }
    const from = (first: number) => Array.from({ length: 24 }, (_, i) => (i >= first ? 128 : 0))
    expect(windowsOf(windows)).toEqual(from(21))
    expect(windowsOf({ ...windows, max_window_layers: 0 })).toEqual(from(0))
    expect(windowsOf({ ...windows, max_window_layers: undefined })).toBeUndefined()
    expect(windowsOf({ ...windows, layer_types: sliding(24), sliding_window: undefined })).toEqual(Array(24).fill(4096))
    expect(windowsOf({ ...windows, sliding_window: null })).toBeUndefined()
    expect(windowsOf({ ...qwen25, sliding_window: 128, max_window_layers: 0 })).toBeUndefined()
  })

  it("reads SmolLM3, with transformers' defaults, and the layers that are not rotated", () => {
    const { layerTable: table, ...rest } = parseModelConfig(smollm3)
    expect(rest).toMatchObject({ hiddenSize: 2048, heads: 16, keyValueHeads: 4, layers: 36, tieEmbeddings: true })
    const every = (interval: number) =>
      Array.from({ length: 36 }, (_, i) => ({ window: 0, rope: (i + 1) % interval === 0 ? "none" : 0 }))
    expect(table).toEqual(every(4))
    expect(parseModelConfig({ ...smollm3, no_rope_layer_interval: 3 }).layerTable).toEqual(every(3))
    expect(parseModelConfig({ ...smollm3, rope_theta: undefined }).ropeTheta).toBe(2_000_000)
    expect(parseModelConfig({ ...smollm3, no_rope_layers: Array(40).fill(1) })).not.toHaveProperty("layerTable")
    const windows = { use_sliding_window: true, sliding_window: 64, no_rope_layers: [1, 0], num_hidden_layers: 2 }
    expect(windowsOf({ ...smollm3, ...windows })).toEqual([0, 64])
  })

  it("reads Gemma 3 equally from every version of transformers", () => {
    const table = Array.from({ length: 18 }, (_, i) =>
      i % 6 === 5 ? { window: 0, rope: 0 } : { window: 512, rope: 1 },
    )
    const expected = {
      architecture: "Gemma3",
      vocabularySize: 262144,
      hiddenSize: 640,
      intermediateSize: 2048,
      layers: 18,
      heads: 4,
      keyValueHeads: 1,
      headSize: 256,
      rmsNormEpsilon: 1e-6,
      ropeTheta: 1e6,
      otherRotary: [{ ropeTheta: 10_000 }],
      layerTable: table,
      queryScalar: 256,
      embeddingScale: Math.sqrt(640),
      gate: "gelu_tanh",
      normOffset: 1,
      branchNorms: true,
      tieEmbeddings: true,
      queryKeyValueBias: false,
      queryKeyNorm: true,
      maxPositions: 32768,
    }
    const newer = { ...gemma3, rope_theta: undefined, rope_local_base_freq: undefined, rope_scaling: undefined }
    for (const json of [
      gemma3,
      gemma3Older,
      newer, // the bases are transformers' defaults
      { ...newer, rope_parameters: { full_attention: { rope_theta: 1e6 }, sliding_attention: { rope_theta: 10_000 } } },
    ])
      expect(parseModelConfig(json)).toEqual(expected)
    const pattern = { num_hidden_layers: 3, sliding_window_pattern: 3 }
    expect(windowsOf({ ...gemma3Older, ...pattern })).toEqual([512, 512, 0])
    expect(countParameters(parseModelConfig(gemma3))).toBe(268_098_176)
  })

  const scaled = (change: object) => ({ ...llama32, rope_scaling: { ...llama32.rope_scaling, ...change } })
  it.each<[string, unknown, RegExp]>([
    ["a list", [], /not a JSON object/],
    ["null", null, /not a JSON object/],
    [
      "another architecture",
      { ...qwen25, architectures: ["GemmaForCausalLM"] },
      /"GemmaForCausalLM" is not supported; supported are Qwen2ForCausalLM, Qwen3ForCausalLM, LlamaForCausalLM, Mistral/,
    ],
    ...mixtures.map(([name, model_type, experts, count]): [string, unknown, RegExp] => [
      `the mixture of experts ${model_type}`,
      { ...qwen25, architectures: [`${name}ForCausalLM`], model_type, ...experts },
      new RegExp(`the architecture "${name}ForCausalLM", a mixture of ${count} experts, is not supported`),
    ]),
    [
      "a mixture of experts by its type alone",
      { model_type: "mixtral", num_local_experts: 8 },
      /"mixtral", a mixture of 8 experts, is not supported/,
    ],
    ["experts in a supported architecture", { ...qwen3, num_experts: 8 }, /num_experts is 8, which changes/],
    ["a model without its head", { ...qwen25, architectures: ["Qwen2Model"] }, /"Qwen2Model" is not supported/],
    ["no architecture", { hidden_size: 8 }, /the architecture undefined is not supported/],
    ["an architecture that objects inherit", { model_type: "constructor" }, /"constructor" is not supported/],
    [
      "contradicting architectures",
      { ...qwen25, model_type: "llama" },
      /model_type "llama" does not fit Qwen2ForCausalLM/,
    ],
    ["sliding windows of Llama", { ...llama32, use_sliding_window: true }, /sliding-window/],
    ["sliding layers without windows", { ...qwen3, layer_types: sliding(28) }, /sliding-window/],
    [
      "sliding layers of no size",
      { ...qwen3, use_sliding_window: true, layer_types: sliding(28) },
      /layer_types has sliding_attention, but sliding_window is null/,
    ],
    [
      "too few layer types",
      { ...qwen25, use_sliding_window: true, layer_types: sliding(2) },
      /layer_types names 2 layers, but num_hidden_layers is 24/,
    ],
    ["other layer types", { ...qwen25, layer_types: Array(24).fill("chunked_attention") }, /layer_types has layers/],
    ["a window of 0", { ...mistral, sliding_window: 0 }, /sliding_window is 0; it must be an integer from 1/],
    [
      "windows in some layers of Mistral",
      { ...mistral, num_hidden_layers: 2, layer_types: ["full_attention", "sliding_attention"] },
      /layer_types does not fit sliding_window/,
    ],
    ["layers of Llama that are not rotated", { ...llama32, no_rope_layers: [1, 0] }, /no_rope_layers/],
    ["too few rotated layers", { ...smollm3, no_rope_layers: [1, 0] }, /no_rope_layers names 2 layers/],
    ["layers that are half rotated", { ...smollm3, no_rope_layers: Array(36).fill(0.5) }, /must be a list of 0 and 1/],
    ["softcapped logits", { ...gemma3, final_logit_softcapping: 30 }, /final_logit_softcapping is 30, which changes/],
    ["softcapped scores", { ...gemma3, attn_logit_softcapping: 50 }, /attn_logit_softcapping is 50, which changes/],
    [
      "attention to later tokens",
      { ...gemma3, use_bidirectional_attention: true },
      /use_bidirectional_attention is true/,
    ],
    ["another gate of Gemma", { ...gemma3, hidden_activation: "gelu" }, /hidden_activation is "gelu"; only "gelu_py/],
    ["linear scaling of Gemma", { ...gemma3, rope_scaling: { rope_type: "linear", factor: 8 } }, /"linear" is not/],
    [
      "scaling in layers with windows",
      { ...gemma3, rope_parameters: { sliding_attention: { rope_type: "yarn", factor: 4 } } },
      /rope type "yarn" is not supported in layers with sliding windows/,
    ],
    [
      "one table for all layers of Gemma",
      { ...gemma3, rope_parameters: { rope_theta: 1 } },
      /rope_theta is not within/,
    ],
    ["a window of Gemma without a size", { ...gemma3, sliding_window: null }, /but sliding_window is null/],
    ["Gemma's scale of scores elsewhere", { ...qwen3, query_pre_attn_scalar: 64 }, /query_pre_attn_scalar is 64/],
    ["longrope", scaled({ rope_type: "longrope" }), /rope type "longrope" is not supported/],
    ["linear scaling", scaled({ rope_type: "linear" }), /rope type "linear" is not supported/],
    [
      "dynamic scaling by its old name",
      scaled({ rope_type: undefined, type: "dynamic" }),
      /rope type "dynamic" is not supported/,
    ],
    ["yarn without a factor", { ...qwen25, rope_parameters: { rope_type: "yarn" } }, /factor is missing/],
    [
      "yarn of a base of 1",
      { ...qwen25, rope_theta: 1, rope_scaling: yarn },
      /rope_theta is 1; YaRN needs one above 1/,
    ],
    ["yarn with a factor in quotes", { ...qwen25, rope_scaling: { ...yarn, beta_fast: "32" } }, /beta_fast is "32"/],
    [
      "positions by layer type",
      { ...qwen25, rope_parameters: { full_attention: { rope_theta: 1 } } },
      /differ between layers/,
    ],
    ["rope_scaling that is a string", { ...qwen25, rope_scaling: "llama3" }, /rope_scaling: it is not a JSON object/],
    ["partial rotation", { ...qwen25, partial_rotary_factor: 0.5 }, /partial_rotary_factor is 0.5/],
    [
      "partial rotation in the new spelling",
      { ...qwen25, rope_parameters: { partial_rotary_factor: 0.5 } },
      /partial_rotary_factor/,
    ],
    ["no scaling factor", scaled({ factor: undefined }), /rope_scaling: factor is missing/],
    ["a negative scaling factor", scaled({ factor: -8 }), /factor is -8; it must be a number above 0/],
    ["frequency factors in the wrong order", scaled({ high_freq_factor: 1 }), /high_freq_factor must be above/],
    ["an infinite rotary base", JSON.parse('{"model_type":"llama","rope_theta":1e999}'), /rope_theta is Infinity/],
    ["another activation", { ...llama32, hidden_act: "gelu" }, /hidden_act is "gelu"; only "silu"/],
    ["biases in the feed-forward network", { ...llama32, mlp_bias: true }, /mlp_bias is true/],
    ["biases in Llama's attention", { ...llama32, attention_bias: true }, /attention_bias is true/],
    ["biases in Qwen3's attention", { ...qwen3, attention_bias: true }, /attention_bias is true/],
    ["quantization", { ...qwen25, quantization_config: { quant_method: "gptq" } }, /quantized/],
    [
      "key-value heads that do not divide",
      { ...qwen25, num_key_value_heads: 3 },
      /num_attention_heads \(14\) must be a multiple of num_key_value_heads \(3/,
    ],
    [
      "more key-value heads than heads",
      { ...qwen25, num_key_value_heads: 28 },
      /num_attention_heads \(14\) must be a multiple of num_key_value_heads \(28/,
    ],
    [
      "heads that do not divide",
      { ...qwen25, hidden_size: 900 },
      /hidden_size \(900\) is not a multiple of num_attention_heads \(14/,
    ],
    ["an odd head size", { ...qwen3, head_dim: 63 }, /head_dim is 63; rotary positions need it to be even/],
    ["no layers", { ...qwen25, num_hidden_layers: 0 }, /num_hidden_layers is 0; it must be an integer from 1 to 1000/],
    ["a fraction of a layer", { ...qwen25, num_hidden_layers: 1.5 }, /num_hidden_layers is 1.5/],
    ["a number in quotes", { ...qwen25, hidden_size: "896" }, /hidden_size is "896"/],
    ["too many layers", { ...qwen25, num_hidden_layers: 1001 }, /num_hidden_layers is 1001/],
    ["too wide a model", { ...qwen25, hidden_size: 65537 }, /hidden_size is 65537/],
    ["too large a vocabulary", { ...qwen25, vocab_size: 2 ** 21 + 1 }, /vocab_size is 2097153/],
    [
      "too wide a feed-forward network",
      { ...qwen25, intermediate_size: 2 ** 53 },
      /intermediate_size is 9007199254740992/,
    ],
    ["too large a head", { ...qwen3, head_dim: 2048 }, /head_dim is 2048/],
    ["too many positions", { ...qwen25, max_position_embeddings: 1e12 }, /max_position_embeddings is 1000000000000/],
    ["an epsilon of 0", { ...qwen25, rms_norm_eps: 0 }, /rms_norm_eps is 0/],
    [
      "a flag that is a number",
      { ...qwen25, tie_word_embeddings: 1 },
      /tie_word_embeddings is 1; it must be true or false/,
    ],
  ])("rejects %s", (_, json, message) => {
    expect(() => parseModelConfig(json)).toThrow(badModel(message))
    expect(() => parseModelConfig(json, "/models/x/config.json")).toThrow(/^\/models\/x\/config\.json/)
  })

  it("throws nothing but GigpoError for any value in any field", () => {
    const values = [null, true, -1, 0, 0.5, 1e308, "", "x", [], [[]], {}, { rope_type: 3 }, { a: {} }, [null]]
    for (const json of [...models, mistral, smollm3]) {
      for (const key of [
        ...Object.keys(json),
        "rope_parameters",
        "layer_types",
        "no_rope_layers",
        "quantization_config",
        "__proto__",
      ]) {
        for (const value of values) {
          try {
            parseModelConfig(JSON.parse(JSON.stringify({ ...json, [key]: value })))
          } catch (error) {
            if (!GigpoError.is(error)) throw error
            expect(error.code).toBe("BAD_MODEL")
          }
        }
      }
    }
  })
})

describe("config.json", () => {
  let folder: string
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-config-"))
  })
  afterEach(async () => {
    await rm(folder, { recursive: true })
  })
  const written = async (): Promise<Record<string, unknown>> =>
    JSON.parse(await readFile(join(folder, "config.json"), "utf8"))

  const scaledModels = [yarn, { ...yarn, attention_factor: 1.5, beta_fast: 16, beta_slow: 2, truncate: false }].map(
    (rope_scaling) => ({ ...qwen25, rope_scaling }),
  )
  const windowed = { ...qwen25, use_sliding_window: true, sliding_window: 128 }
  const unwindowed = { ...mistral, sliding_window: null }
  it.each([...models, ...scaledModels, windowed, mistral, unwindowed, smollm3, gemma3, gemma3Older])(
    "is read back as it was written: $model_type",
    async (json) => {
      const config = parseModelConfig(json)
      for (const original of [undefined, json]) {
        await writeModelConfig(folder, config, { dtype: "BF16", ...(original && { original }) })
        expect(await readModelConfig(folder)).toEqual(config)
        expect(await written()).toMatchObject({
          architectures: json.architectures,
          torch_dtype: "bfloat16",
          dtype: "bfloat16",
        })
      }
    },
  )

  it("of a critic of Gemma has the name that transformers gives it", async () => {
    await writeModelConfig(folder, parseModelConfig(gemma3), { dtype: "F32", head: "value" })
    expect(await written()).toMatchObject({ architectures: ["Gemma3TextForSequenceClassification"], num_labels: 1 })
  })

  it("keeps unknown keys and sets the written dtype", async () => {
    const original = {
      ...qwen25,
      torch_dtype: "bfloat16",
      eos_token_id: [1, 2],
      attention_dropout: 0,
      custom: { deep: [null] },
    }
    await writeModelConfig(folder, parseModelConfig(original), { dtype: "F32", original })
    expect(await written()).toEqual({ ...original, torch_dtype: "float32", dtype: "float32" })
  })

  it("keeps numbers and keys as they were written", async () => {
    const lines = [
      '  "rms_norm_eps": 1e-06,',
      '  "attention_dropout": 0.0,',
      '  "initializer_range": 1.0,',
      '  "seed": 2512292042121000001,',
      '  "label": {"10": 1.50, "2": [1e-07]},',
    ]
    const rest = JSON.stringify({ ...qwen25, rms_norm_eps: undefined }, null, 2)
    await writeFile(join(folder, "config.json"), rest.replace("{\n", `{\n${lines.join("\n")}\n`))
    const [config, original] = [await readModelConfig(folder), await readConfigJson(folder)]
    await writeModelConfig(folder, { ...config, vocabularySize: 2048 }, { dtype: "F32", original })
    const text = await readFile(join(folder, "config.json"), "utf8")
    for (const line of lines) expect(text).toContain(`${line}\n`)
    expect(JSON.parse(text)).toMatchObject({ vocab_size: 2048, rms_norm_eps: 1e-6 })
    expect(text).toMatch(/^\{\n {2}"[\s\S]*\n\}\n$/)
  })

  it("replaces the positions of the original", async () => {
    const original = {
      ...llama32,
      rope_scaling: null,
      original_max_position_embeddings: 4096,
      rope_parameters: { ...llama32.rope_scaling, rope_theta: 7, original_max_position_embeddings: 5 },
    }
    const config = parseModelConfig(original)
    expect(config).toMatchObject({ ropeTheta: 7, ropeScaling: { originalMaxPositions: 4096 } })
    await writeModelConfig(folder, config, { dtype: "F32", original })
    expect(await readModelConfig(folder)).toEqual(config)
    expect(await written()).not.toHaveProperty("rope_parameters")
    expect(await written()).not.toHaveProperty("original_max_position_embeddings")
  })

  it("is rejected when it is missing or not JSON", async () => {
    await expect(readModelConfig(folder)).rejects.toEqual(badModel(/config\.json is missing/))
    await writeFile(join(folder, "config.json"), '{"a":')
    await expect(readModelConfig(folder)).rejects.toEqual(badModel(/config\.json is not valid JSON/))
    await writeFile(join(folder, "config.json"), "3")
    await expect(readConfigJson(folder)).rejects.toEqual(badModel(/not a JSON object/))
  })

  it("gives IO when the system cannot read or write it", async () => {
    await mkdir(join(folder, "config.json"))
    await expect(readModelConfig(folder)).rejects.toMatchObject({
      code: "IO",
      message: expect.stringMatching(/folder, not a file/),
    })
    await expect(writeModelConfig(folder, tiny, { dtype: "F32" })).rejects.toMatchObject({ code: "IO" })
  })
})

describe("tensorShapes", () => {
  it("names every weight of a Qwen2 model", () => {
    expect([...tensorShapes(tiny)]).toEqual([
      ["model.embed_tokens.weight", [11, 8]],
      ["model.layers.0.input_layernorm.weight", [8]],
      ["model.layers.0.self_attn.q_proj.weight", [8, 8]],
      ["model.layers.0.self_attn.q_proj.bias", [8]],
      ["model.layers.0.self_attn.k_proj.weight", [4, 8]],
      ["model.layers.0.self_attn.k_proj.bias", [4]],
      ["model.layers.0.self_attn.v_proj.weight", [4, 8]],
      ["model.layers.0.self_attn.v_proj.bias", [4]],
      ["model.layers.0.self_attn.o_proj.weight", [8, 8]],
      ["model.layers.0.post_attention_layernorm.weight", [8]],
      ["model.layers.0.mlp.gate_proj.weight", [12, 8]],
      ["model.layers.0.mlp.up_proj.weight", [12, 8]],
      ["model.layers.0.mlp.down_proj.weight", [8, 12]],
      ["model.norm.weight", [8]],
      ["lm_head.weight", [11, 8]],
    ])
  })

  it("has norms on queries and keys for Qwen3, and no head where it is tied", () => {
    const names = tensorShapes(parseModelConfig(qwen3))
    expect(names.get("model.layers.27.self_attn.q_norm.weight")).toEqual([128])
    expect(names.get("model.layers.27.self_attn.k_norm.weight")).toEqual([128])
    expect(names.get("model.layers.0.self_attn.q_proj.weight")).toEqual([2048, 1024])
    expect(names.get("model.layers.0.self_attn.o_proj.weight")).toEqual([1024, 2048])
    expect(names.has("model.layers.0.self_attn.q_proj.bias")).toBe(false)
    expect(names.has("lm_head.weight")).toBe(false)
  })

  it("counts the published numbers of parameters", () => {
    expect(countParameters(parseModelConfig(qwen25))).toBe(494_032_768)
    expect(countParameters(parseModelConfig(qwen3))).toBe(596_049_920)
    expect(countParameters(parseModelConfig(llama32))).toBe(1_235_814_400)
  })
})

describe("checkTensors", () => {
  type Headers = Pick<TensorFiles, "names" | "info">
  const headers = (change: (shapes: Map<string, readonly number[]>) => void = () => {}, config = tiny): Headers => {
    const shapes = tensorShapes(config)
    change(shapes)
    const info = (name: string): TensorInfo => ({ dtype: "BF16", shape: shapes.get(name)!, bytes: 0 })
    return { names: [...shapes.keys()], info }
  }

  it("accepts exactly the weights of the configuration", () => {
    expect(() => checkTensors(tiny, headers())).not.toThrow()
  })

  it("ignores stored rotary frequencies and a copy of the tied head", () => {
    const tied = { ...tiny, tieEmbeddings: true }
    const extra = (shapes: Map<string, readonly number[]>) => {
      shapes.set("model.layers.0.self_attn.rotary_emb.inv_freq", [2]).set("lm_head.weight", [11, 8])
    }
    expect(() => checkTensors(tied, headers(extra, tied))).not.toThrow()
  })

  it.each<[string, (shapes: Map<string, readonly number[]>) => void, RegExp]>([
    ["a missing tensor", (s) => s.delete("model.norm.weight"), /lack tensor "model\.norm\.weight"\. Use/],
    ["many missing tensors", (s) => s.clear(), /lack tensors "model\.embed_tokens\.weight", .* and 10 more/],
    ["a missing head", (s) => s.delete("lm_head.weight"), /lack tensor "lm_head\.weight"/],
    [
      "an unknown tensor",
      (s) => s.set("model.layers.1.mlp.up_proj.weight", [1]),
      /contain tensor "model\.layers\.1\.mlp\.up_proj\.weight", which/,
    ],
    [
      "a transposed matrix",
      (s) => s.set("model.layers.0.mlp.up_proj.weight", [8, 12]),
      /up_proj\.weight" has shape \[8, 12\], but config\.json requires \[12, 8\]/,
    ],
    ["a vector in place of a matrix", (s) => s.set("lm_head.weight", [88]), /has shape \[88\]/],
    ["an extra dimension", (s) => s.set("model.norm.weight", [8, 1]), /has shape \[8, 1\]/],
    ["very many dimensions", (s) => s.set("model.norm.weight", Array(5000).fill(1)), /has shape 5000 dimensions/],
  ])("rejects %s by name", (_, change, message) => {
    expect(() => checkTensors(tiny, headers(change))).toThrow(badModel(message))
  })
})
