import { type ConfigFields, describe } from "./config-fields.ts"
import { keySet, warnOfUnknownKeys } from "./known-keys.ts"

// Fields of adapter_config.json in PEFT 0.21. Each is read, has no effect on the computation, or is rejected with the reason.

const read = keySet(
  "peft_type task_type base_model_name_or_path r lora_alpha lora_dropout bias use_rslora target_modules exclude_modules",
  "rank_pattern alpha_pattern layers_to_transform layers_pattern modules_to_save ensure_weight_tying init_lora_weights",
)

/** Fields without effect: versions, runtime settings, and details of initializations and features that other fields enable. */
const withoutEffect = keySet(
  "auto_mapping peft_version revision inference_mode runtime_config megatron_core qalora_group_size eva_config corda_config",
  "lora_ga_config loftq_config",
  "fan_in_fan_out", // for GPT-2's layers; PEFT resets it for the linear layers of these models
)

const merge = "merge it into its base model with PEFT (merge_and_unload, save_pretrained) and open that model"

/** Meaning of the fields that enable another computation. */
const computations: Readonly<Record<string, string>> = {
  use_dora: "weights are split into magnitude and direction (DoRA)",
  use_qalora: "inputs are pooled (QALoRA)",
  use_bdlora: "matrices are block-diagonal (BD-LoRA)",
  lora_bias: "the LoRA matrices have biases",
  velora_config: "gradients are computed from compressed activations (VeLoRA)",
  monteclora_config: "the LoRA matrices are sampled (MonteCLoRA)",
  arrow_config: "each token selects among several adapters (Arrow)",
  kasa_config: "the model's smallest singular values are cut off (KaSA)",
  alora_invocation_tokens: "the adapter is active only after certain tokens (aLoRA)",
  layer_replication: "layers of the model are repeated",
  target_parameters: "LoRA matrices belong to parameters that are not linear layers",
  trainable_token_indices: "single rows of the embedding are trained",
  megatron_config: "the layers are those of Megatron",
}

/** Initializations that leave the base model unchanged, so that the stored LoRA matrices are sufficient. */
const plainStarts: readonly unknown[] = [true, false, "gaussian", "orthogonal", "eva"]

const changed =
  "which changes the weights of the base model before training, so the adapter is not valid for the unchanged model. Save it " +
  "with PEFT's save_pretrained(path, path_initial_model_for_weight_conversion=...), which converts it, or "

/**
 * Throws for fields that would change the computation, and warns of unknown fields.
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
  /** Creates the error. `what` is a clause; `fix` says what to do instead. */
  readonly refuse: (what: string, fix: string) => Error
}

function checkStart(start: unknown, refuse: Refusing["refuse"]): void {
  const name = typeof start === "string" ? start.toLowerCase() : start
  if (plainStarts.includes(name)) return
  const setting = `init_lora_weights is ${describe(start)}`
  if (typeof name === "string" && /^(pissa(_niter_\d+)?|olora|corda|lora_ga)$/.test(name))
    throw refuse(`${setting}, ${changed.replace(/, or $/, "")}`, merge)
  if (name === "loftq")
    throw refuse(`${setting}, which is trained on quantized weights, not on the unchanged model`, merge)
  if (name === "mica")
    throw refuse(
      `${setting}, which never trains matrix B; gigpo trains both matrices`,
      "set it to true in adapter_config.json to train both",
    )
  throw refuse(
    `${setting}, which PEFT 0.21 does not support`,
    "set it to true if the adapter belongs to the unchanged model",
  )
}

/** Whether a value is neither null nor false nor empty. */
function isSet(value: unknown): boolean {
  if (typeof value === "object" && value !== null) return Object.keys(value).length > 0
  return (value ?? false) !== false
}
