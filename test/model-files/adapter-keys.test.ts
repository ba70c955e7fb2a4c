import { randomUUID } from "node:crypto"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { checkAdapterKeys } from "../../src/model-files/adapter-keys.ts"

let warnings: string[]
beforeEach(() => {
  warnings = []
  vi.spyOn(process, "emitWarning").mockImplementation((warning) => void warnings.push(String(warning)))
})
afterEach(() => vi.restoreAllMocks())

const check = (json: Record<string, unknown>) =>
  checkAdapterKeys({ json, refuse: (what, fix) => new Error(`${what}. Instead, ${fix}.`) }, randomUUID())

/** Every field of LoraConfig of PEFT 0.21.2 with its default, as save_pretrained writes them. */
const defaults = {
  alora_invocation_tokens: null,
  alpha_pattern: {},
  arrow_config: null,
  auto_mapping: null,
  base_model_name_or_path: "model",
  bias: "none",
  corda_config: null,
  ensure_weight_tying: false,
  eva_config: null,
  exclude_modules: null,
  fan_in_fan_out: false,
  inference_mode: true,
  init_lora_weights: true,
  kasa_config: null,
  layer_replication: null,
  layers_pattern: null,
  layers_to_transform: null,
  loftq_config: {},
  lora_alpha: 8,
  lora_bias: false,
  lora_dropout: 0.0,
  lora_ga_config: null,
  megatron_config: null,
  megatron_core: "megatron.core",
  modules_to_save: null,
  monteclora_config: null,
  peft_type: "LORA",
  peft_version: "0.21.2",
  qalora_group_size: 16,
  r: 8,
  rank_pattern: {},
  revision: null,
  target_modules: ["q_proj", "v_proj"],
  target_parameters: null,
  task_type: "CAUSAL_LM",
  trainable_token_indices: null,
  use_bdlora: null,
  use_dora: false,
  use_qalora: false,
  use_rslora: false,
  velora_config: null,
}

describe("adapter_config.json", () => {
  it("of PEFT's defaults is known to the last key", () => {
    check(defaults)
    expect(warnings).toEqual([])
  })

  // PEFT computes with the stored pairs alone beside the model as it is.
  it.each([true, false, null, "gaussian", "Gaussian", "orthogonal", "eva"])("may start from %s", (start) => {
    check({ ...defaults, init_lora_weights: start })
    expect(warnings).toEqual([])
  })

  it.each<[unknown, RegExp]>([
    [
      "pissa",
      /"pissa", which changes the weights of the base model.*path_initial_model_for_weight_conversion.*merge_and_unload/,
    ],
    ["pissa_niter_16", /changes the weights of the base model/],
    ["olora", /changes the weights of the base model/],
    ["OLoRA", /changes the weights of the base model/],
    ["corda", /changes the weights of the base model/],
    ["lora_ga", /changes the weights of the base model/],
    ["loftq", /trained on quantized weights/],
    ["mica", /which never trains matrix B/],
    ["of_tomorrow", /"of_tomorrow", which PEFT 0.21 does not support/],
    [3, /init_lora_weights is 3/],
  ])("that starts from %j is rejected with the reason and the fix", (start, message) => {
    expect(() => check({ ...defaults, init_lora_weights: start })).toThrow(message)
  })

  it.each<[string, unknown, RegExp]>([
    ["use_dora", true, /DoRA/],
    ["use_qalora", true, /QALoRA/],
    ["use_bdlora", { nblocks: 2 }, /BD-LoRA/],
    ["lora_bias", true, /biases/],
    ["velora_config", { num_groups: 2 }, /VeLoRA/],
    ["monteclora_config", { n: 2 }, /MonteCLoRA/],
    ["arrow_config", { top_k: 3 }, /Arrow/],
    ["kasa_config", { beta: 1 }, /KaSA/],
    ["alora_invocation_tokens", [1, 2], /aLoRA/],
    ["layer_replication", [[0, 2]], /repeated/],
    ["target_parameters", ["experts.down_proj"], /not linear layers/],
    ["trainable_token_indices", [3], /single rows/],
    ["trainable_token_indices", { embed_tokens: [3] }, /single rows/],
    ["megatron_config", { tensor_model_parallel_size: 2 }, /Megatron/],
  ])("that says %s: %j is rejected with the reason and the fix", (key, value, reason) => {
    const refused = expect(() => check({ ...defaults, [key]: value }))
    refused.toThrow(new RegExp(`${key} is set: .*${reason.source}.*Instead, merge it`, "s"))
  })

  it("has unknown keys named in a warning", () => {
    check({ ...defaults, use_something_new: true })
    expect(warnings.join()).toContain('the key "use_something_new" is unknown and has no effect')
  })
})
