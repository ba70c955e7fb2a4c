import type { ConfigFields } from "./config-fields.ts"
import { describe } from "./config-fields.ts"
import type { Family } from "./family.ts"
import { keySet, warnOfUnknownKeys, warnOnce } from "./known-keys.ts"

// Fields of config.json and generation_config.json: read, without effect, or rejected. All others are named in a warning.

const read = keySet(
  "architectures model_type vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads",
  "head_dim hidden_act rms_norm_eps rope_theta rope_scaling rope_parameters original_max_position_embeddings",
  "partial_rotary_factor tie_word_embeddings max_position_embeddings eos_token_id quantization_config",
  "attention_bias mlp_bias use_sliding_window sliding_window max_window_layers layer_types no_rope_layers no_rope_layer_interval",
  "attention_dropout auto_map",
)

/** Fields without effect on the results of the supported architectures in transformers. */
const withoutEffect = keySet(
  // Token ids that the tokenizer files also define, and metadata about the file.
  "bos_token_id pad_token_id sep_token_id decoder_start_token_id tokenizer_class transformers_version torch_dtype dtype _name_or_path",
  "name_or_path _commit_hash finetuning_task task_specific_params prefix problem_type id2label label2id num_labels architecture",
  "unsloth_version unsloth_fixed unsloth_free use_unsloth _attn_implementation_autoset _attn_implementation attn_implementation",
  // Initialization, caches and outputs of a library.
  "initializer_range use_cache return_dict output_attentions output_hidden_states torchscript use_bfloat16 pruned_heads",
  "is_decoder is_encoder_decoder add_cross_attention cross_attention_hidden_size chunk_size_feed_forward tie_encoder_decoder",
  "tf_legacy_loss return_dict_in_generate output_scores gradient_checkpointing use_return_dict num_return_sequences",
  // Tensor parallelism.
  "pretraining_tp base_model_tp_plan base_model_pp_plan",
  // Defaults of generate() in older files; the sampling settings of this package apply instead.
  "max_length min_length do_sample early_stopping num_beams num_beam_groups diversity_penalty temperature top_k top_p typical_p",
  "length_penalty no_repeat_ngram_size encoder_no_repeat_ngram_size repetition_penalty bad_words_ids forced_bos_token_id",
  "forced_eos_token_id remove_invalid_values exponential_decay_length_penalty suppress_tokens begin_suppress_tokens",
)

/** Fields that change the computation in related models, each with the value that has no effect. */
const neutral: Readonly<Record<string, unknown>> = {
  attn_logit_softcapping: undefined,
  final_logit_softcapping: undefined,
  query_pre_attn_scalar: undefined,
  use_bidirectional_attention: false,
  clip_qkv: undefined,
  embedding_multiplier: 1,
  residual_multiplier: 1,
  attention_multiplier: undefined,
  logits_scaling: 1,
  logit_scale: 1,
  scale_emb: 1,
  scale_depth: undefined,
  dim_model_base: undefined,
  qkv_bias: false,
  use_bias: false,
  lm_head_bias: false,
  use_qk_norm: false,
  qk_layernorm: false,
  use_mrope: false,
  alibi: false,
  num_experts: 0,
  num_local_experts: 0,
  n_routed_experts: 0,
  num_experts_per_tok: 0,
  kv_lora_rank: undefined,
  num_nextn_predict_layers: 0,
  num_mtp_layers: 0,
  compression_config: undefined,
}

const rotary = keySet(
  "rope_theta rope_type type factor low_freq_factor high_freq_factor original_max_position_embeddings partial_rotary_factor",
  "attention_factor mscale mscale_all_dim beta_fast beta_slow truncate",
)

/** Throws for unsupported fields that change the computation. Warns of unknown fields and of those that only affect training. */
export function checkConfigKeys(
  { json, fail }: ConfigFields,
  file: string,
  { keys: own = [] }: Pick<Family, "keys">,
): void {
  for (const [key, value] of Object.entries(neutral)) {
    const given = json[key] ?? undefined
    if (given === undefined || given === value || own.includes(key)) continue
    throw fail(`${key} is ${describe(given)}, which changes what the model computes and is not supported`)
  }
  const known = { has: (key: string) => read.has(key) || withoutEffect.has(key) || key in neutral || own.includes(key) }
  warnOfUnknownKeys(file, json, known)
  for (const key of ["rope_scaling", "rope_parameters"]) {
    const rope = json[key]
    for (const table of isTable(rope) ? [rope, ...Object.values(rope).filter(isTable)] : []) {
      const plain = Object.entries(table).filter(([, value]) => !isTable(value))
      warnOfUnknownKeys(`${file}, ${key}`, Object.fromEntries(plain), {
        has: (name) => rotary.has(name) || own.includes(name),
      })
    }
  }
  const dropout = json.attention_dropout ?? 0
  if (dropout !== 0)
    warnOnce(
      `${file}: attention_dropout is ${describe(dropout)}, but gigpo trains without dropout. Set it to 0 to silence this warning.`,
    )
  if (json.auto_map !== undefined)
    warnOnce(
      `${file}: auto_map names custom Python code, which is never run; the model is computed as its ` +
        "model_type says. If that code computes something else, do not use this model with gigpo.",
    )
}

/**
 * Warns of unknown fields of a vision-language model's config.json outside its parts.
 *
 * @param isFlat - whether the fields of the language model are among them, which are checked elsewhere.
 */
export function checkRootKeys(
  file: string,
  json: ConfigFields["json"],
  keys: readonly string[],
  isFlat: boolean,
): void {
  if (isFlat) return
  const known = keySet(
    "architectures model_type text_config vision_config tie_word_embeddings quantization_config eos_token_id auto_map",
  )
  warnOfUnknownKeys(file, json, { has: (key) => known.has(key) || withoutEffect.has(key) || keys.includes(key) })
}

const isTable = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const generation = keySet(
  // Used by the tokenizer, or repeated there.
  "eos_token_id bos_token_id pad_token_id decoder_start_token_id",
  // Sampling defaults: the settings of this package apply instead, and log-probabilities follow them.
  "do_sample temperature top_k top_p min_p typical_p top_h epsilon_cutoff eta_cutoff repetition_penalty max_length max_new_tokens",
  // Runtime settings of a library, and metadata about the file.
  "transformers_version _from_model_config _commit_hash use_cache cache_implementation cache_config max_cache_len num_beams",
  "early_stopping num_return_sequences output_attentions output_hidden_states output_scores output_logits num_beam_groups",
  "return_dict_in_generate max_time low_memory disable_compile compile_config prefill_chunk_size remove_invalid_values",
  "is_assistant num_assistant_tokens num_assistant_tokens_schedule assistant_confidence_threshold prompt_lookup_num_tokens",
  "max_matching_ngram_size assistant_early_exit assistant_lookbehind target_lookbehind continuous_batching_config use_mtp",
  "chat_format", // of Qwen's first files
)

/** Fields that would change which tokens are sampled, each with the value that has no effect. */
const idle: Readonly<Record<string, unknown>> = {
  length_penalty: 1,
  diversity_penalty: 0,
  encoder_repetition_penalty: 1,
  no_repeat_ngram_size: 0,
  encoder_no_repeat_ngram_size: 0,
  min_length: 0,
  renormalize_logits: false,
  token_healing: false,
  guidance_scale: 1,
}

/** Warns of fields of generation_config.json that this package ignores, such as penalties and token lists. */
export function checkGenerationKeys(file: string, json: Readonly<Record<string, unknown>>): void {
  const acting = Object.entries(json).filter(([key, value]) => !(key in idle && idle[key] === value))
  warnOfUnknownKeys(file, Object.fromEntries(acting), generation)
}
