import { randomUUID } from "node:crypto"
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { checkGenerationKeys } from "../../src/model-files/config-keys.ts"
import { parseModelConfig, readConfigJson } from "../../src/model-files/model-config.ts"
import { openSafetensors } from "../../src/model-files/safetensors.ts"
import { writeSafetensors } from "../../src/model-files/safetensors-writer.ts"
import { checkTokenizerKeys } from "../../src/tokenizer/config-keys.ts"
import { modelPath } from "../engine/fixtures.ts"

let warnings: string[]
let file: string
beforeEach(() => {
  warnings = []
  file = `${randomUUID()}/config.json` // warnings are given once for each file
  vi.spyOn(process, "emitWarning").mockImplementation((warning) => void warnings.push(String(warning)))
})
afterEach(() => vi.restoreAllMocks())

describe("config.json", () => {
  const parse = async (change: object, model = "llama") =>
    parseModelConfig({ ...(await readConfigJson(modelPath(model))), ...change }, file)

  it.each(["qwen2", "qwen2-untied", "qwen3", "llama", "llama-f16"])("of %s is known to the last key", async (model) => {
    await parse({}, model)
    expect(warnings).toEqual([])
  })

  it.each<[string, unknown]>([
    ["embedding_multiplier", 12],
    ["residual_multiplier", 0.22],
    ["logits_scaling", 8],
    ["attention_multiplier", 0.0078],
    ["final_logit_softcapping", 30],
    ["attn_logit_softcapping", 50],
    ["clip_qkv", 8],
    ["num_local_experts", 8],
    ["num_experts", 128],
    ["use_qk_norm", true],
    ["num_nextn_predict_layers", 1],
    ["compression_config", {}],
    ["quantization_config", { quant_method: "gptq" }],
    ["mlp_bias", true],
    ["attention_bias", true],
    ["hidden_act", "gelu"],
    ["partial_rotary_factor", 0.5],
    ["layer_types", ["full_attention", "sliding_attention"]],
  ])("that says %s is rejected by name", async (key, value) => {
    await expect(parse({ [key]: value })).rejects.toMatchObject({
      code: "BAD_MODEL",
      message: expect.stringMatching(key.replace(/layer_types/, "sliding")),
    })
    expect(warnings).toEqual([])
  })

  it("may hold such keys with the value that changes nothing", async () => {
    await parse({ embedding_multiplier: 1, logits_scaling: 1, num_experts: 0, use_qk_norm: false, clip_qkv: null })
    expect(warnings).toEqual([])
  })

  it("has its unknown keys named in one warning, once", async () => {
    await parse({ mystery_scale: 3, other: null, another: "x" })
    await parse({ mystery_scale: 3, other: null, another: "x" })
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toContain(`${file}: the keys "mystery_scale", "another" are unknown`)
  })

  it("has unknown keys of its rotary positions named", async () => {
    await parse({ rope_parameters: { rope_type: "default", rope_theta: 1e4, mrope_section: [1, 2] } })
    expect(warnings.join()).toContain(`${file}, rope_parameters: the key "mrope_section" is unknown`)
  })

  it("has dropout and code of its own named", async () => {
    await parse({ attention_dropout: 0.1, auto_map: { AutoModelForCausalLM: "code.Model" } })
    expect(warnings.join()).toMatch(/attention_dropout is 0.1.*auto_map names custom Python code/s)
  })
})

describe("generation_config.json", () => {
  it.each<[string, unknown]>([
    ["suppress_tokens", [3]],
    ["begin_suppress_tokens", [3]],
    ["bad_words_ids", [[3]]],
    ["forced_bos_token_id", 3],
    ["forced_eos_token_id", 3],
    ["sequence_bias", []],
    ["stop_strings", ["x"]],
    ["min_new_tokens", 3],
    ["no_repeat_ngram_size", 3],
    ["guidance_scale", 2],
    ["watermarking_config", {}],
    ["something_new", 1],
  ])("that says %s is named in a warning", (key, value) => {
    checkGenerationKeys(file, { eos_token_id: 1, temperature: 0.7, top_p: 0.8, [key]: value })
    expect(warnings.join()).toContain(`${file}: the key "${key}" is unknown and has no effect`)
  })

  it("of Qwen2.5 contains no unknown keys", () => {
    checkGenerationKeys(file, {
      bos_token_id: 1,
      do_sample: true,
      eos_token_id: [2, 3],
      pad_token_id: 1,
      repetition_penalty: 1.05,
      temperature: 0.7,
      top_k: 20,
      top_p: 0.8,
      transformers_version: "4.37.0",
      no_repeat_ngram_size: 0,
    })
    expect(warnings).toEqual([])
  })
})

describe("tokenizer_config.json", () => {
  it("has its unknown keys named, and code that is not run", () => {
    checkTokenizerKeys(file, {
      eos_token: "x",
      think_end_token: "y",
      lowercase_first: true,
      auto_map: {},
    })
    expect(warnings.join()).toMatch(/the key "lowercase_first" is unknown.*auto_map refers to/s)
  })

  it("of Qwen2.5 and Llama 3 contains no unknown keys", () => {
    checkTokenizerKeys(file, {
      add_bos_token: false,
      add_prefix_space: false,
      added_tokens_decoder: {},
      additional_special_tokens: [],
      bos_token: null,
      chat_template: "",
      clean_up_tokenization_spaces: false,
      eos_token: "x",
      errors: "replace",
      model_max_length: 1,
      pad_token: "y",
      split_special_tokens: false,
      tokenizer_class: "Qwen2Tokenizer",
      unk_token: null,
      model_input_names: [],
    })
    expect(warnings).toEqual([])
  })
})

describe("a head that the files hold although the embedding is tied to it", () => {
  let folder: string
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-tied-"))
    await cp(modelPath("qwen3"), folder, { recursive: true })
  })
  afterEach(() => rm(folder, { recursive: true }))

  async function withHead(change: (values: Float32Array) => void): Promise<void> {
    const files = await openSafetensors(modelPath("qwen3"))
    const read = async (name: string) => {
      const chunks: Uint8Array[] = []
      for await (const chunk of files.read(name)) chunks.push(chunk.slice())
      return Buffer.concat(chunks)
    }
    const tensors = new Map<string, Buffer>()
    for (const name of files.names) tensors.set(name, await read(name))
    const head = new Float32Array(new Uint8Array(tensors.get("model.embed_tokens.weight")!).buffer)
    change(head)
    const sources = files.names.map((name) => ({ name, bytes: tensors.get(name)!, shape: files.info(name).shape }))
    sources.push({
      name: "lm_head.weight",
      bytes: Buffer.from(head.buffer),
      shape: files.info("model.embed_tokens.weight").shape,
    })
    await files.close()
    const chunks = async function* (bytes: Buffer) {
      yield new Uint8Array(bytes)
    }
    await rm(join(folder, "model.safetensors"))
    await writeSafetensors(
      join(folder, "model.safetensors"),
      sources.map(({ name, bytes, shape }) => ({ name, dtype: "F32" as const, shape, chunks: chunks(bytes) })),
      {},
    )
  }
  const tokens = Int32Array.of(3, 1, 4)

  it("is the embedding once more where it is the same", async () => {
    await withHead(() => {})
    await using policy = await NativePolicy.open(folder)
    expect(policy.config.tieEmbeddings).toBe(true)
    expect(warnings).toEqual([])
  })

  // transformers 5 does not tie them either.
  it("counts where it differs, and is saved as such", async () => {
    await withHead((values) => values.set(values.map((value) => -value)))
    await using policy = await NativePolicy.open(folder)
    await using tied = await NativePolicy.open(modelPath("qwen3"))
    expect(policy.config.tieEmbeddings).toBe(false)
    expect(warnings.join()).toContain(
      "lm_head.weight differs from model.embed_tokens.weight, though tie_word_embeddings is true",
    )
    expect(await policy.logits(tokens)).toEqual((await tied.logits(tokens)).map((logit) => -logit))
    await policy.save(join(folder, "saved"))
    expect(JSON.parse(await readFile(join(folder, "saved", "config.json"), "utf8")).tie_word_embeddings).toBe(false)
    await expect(tied.load(folder)).rejects.toMatchObject({
      code: "BAD_MODEL",
      message: expect.stringMatching(/has an untied head/),
    })
  })

  it("of another shape counts and is rejected", async () => {
    await withHead(() => {})
    const path = join(folder, "model.safetensors")
    const bytes = await readFile(path)
    const header = bytes.indexOf('"lm_head.weight":{"dtype":"F32","shape":[67,40]')
    if (header < 0) throw new Error("The header is written in another way.")
    bytes.write("[40,67]", bytes.indexOf("[67,40]", header))
    await writeFile(path, bytes)
    await expect(NativePolicy.open(folder)).rejects.toMatchObject({
      code: "BAD_MODEL",
      message: expect.stringMatching(/lm_head.weight" has shape \[40, 67\]/),
    })
  })
})
