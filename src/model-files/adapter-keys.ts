import { type ConfigFields, describe } from "./config-fields.ts"
import { keySet, warnOfUnknownKeys } from "./known-keys.ts"

// Keys of adapter_config.json, as PEFT 0.21 has them: read, without effect on what is computed, or refused with the reason.

const read = keySet(
  "peft_type task_type base_model_name_or_path r lora_alpha lora_dropout bias use_rslora target_modules exclude_modules",
  "rank_pattern alpha_pattern layers_to_transform layers_pattern modules_to_save ensure_weight_tying init_lora_weights",
)

/** Versions, how a library runs, and settings of first values and features that other keys switch on. */
const withoutEffect = keySet(
  "auto_mapping peft_version revision inference_mode runtime_config megatron_core qalora_group_size eva_config corda_config",
  "lora_ga_config loftq_config",
  "fan_in_fan_out", // of GPT-2's layers; PEFT takes it back for the linear layers of these models
)

const merge = "merge it into its model with PEFT (merge_and_unload, save_pretrained) and open that model"

/** What the keys mean that switch on another computation. */
const computations: Readonly<Record<string, string>> = {
  use_dora: "weights are split into magnitude and direction (DoRA)",
  use_qalora: "inputs are pooled (QALoRA)",
  use_bdlora: "matrices are block-diagonal (BD-LoRA)",
  lora_bias: "its pairs have biases",
  velora_config: "gradients are computed from compressed activations (VeLoRA)",
  monteclora_config: "its pairs are sampled (MonteCLoRA)",
  arrow_config: "several adapters are chosen from at each token (Arrow)",
  kasa_config: "the model's smallest singular values are cut off (KaSA)",
  alora_invocation_tokens: "it is active after certain tokens only (aLoRA)",
  layer_replication: "layers of the model are repeated",
  target_parameters: "pairs belong to parameters that are not linear layers",
  trainable_token_indices: "single rows of the embedding are trained",
  megatron_config: "its layers are those of Megatron",
}

/** First values that are stored and need nothing else: PEFT computes with the pairs alone, beside the model as it is. */
const plainStarts: readonly unknown[] = [true, false, "gaussian", "orthogonal", "eva"]

const changed =
  "which changes the model's own weights before training: beside the model as it is the adapter means something else. Save it " +
  "with PEFT's save_pretrained(path, path_initial_model_for_weight_conversion=...), which converts it, or "

/**
 * Refuses what an adapter would be computed differently by; names unknown keys.
 *
 * @throws GigpoError `BAD_MODEL`
 */
export function checkAdapterKeys({ json, refuse }: Pick<ConfigFields, "json"> & Refusing, file: string): void {
  for (const [key, meaning] of Object.entries(computations))
    if (isSet(json[key])) throw refuse(`${key} is set: ${meaning}, which is not supported`, merge)
  checkStart(json.init_lora_weights ?? true, refuse)
  warnOfUnknownKeys(file, json, { has: (key) => read.has(key) || withoutEffect.has(key) || key in computations })
}

interface Refusing {
  /** `what` is a clause, `fix` what to do instead. */
  readonly refuse: (what: string, fix: string) => Error
}

function checkStart(start: unknown, refuse: Refusing["refuse"]): void {
  const name = typeof start === "string" ? start.toLowerCase() : start
  if (plainStarts.includes(name)) return
  const said = `init_lora_weights is ${describe(start)}`
  if (typeof name === "string" && /^(pissa(_niter_\d+)?|olora|corda|lora_ga)$/.test(name))
    throw refuse(`${said}, ${changed.replace(/, or $/, "")}`, merge)
  if (name === "loftq")
    throw refuse(`${said}, which is trained beside quantized weights, not beside the model as it is`, merge)
  if (name === "mica")
    throw refuse(
      `${said}, whose B is never trained; here both are`,
      "set it to true in adapter_config.json to train both",
    )
  throw refuse(`${said}, which PEFT 0.21 does not know`, "set it to true if the pairs belong to the unchanged model")
}

/** What is not null, false, nor empty. */
function isSet(value: unknown): boolean {
  if (typeof value === "object" && value !== null) return Object.keys(value).length > 0
  return (value ?? false) !== false
}
