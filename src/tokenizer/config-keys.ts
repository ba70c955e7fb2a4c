import { keySet, warnOfUnknownKeys, warnOnce } from "../model-files/known-keys.ts"

/** Known keys of tokenizer_config.json: those that are read, and those without effect on ids, texts and prompts. */
const known = keySet(
  // Read: special tokens, templates, and how the library encodes.
  "eos_token bos_token pad_token unk_token sep_token cls_token mask_token additional_special_tokens extra_special_tokens",
  "model_specific_special_tokens chat_template add_bos_token add_eos_token add_prefix_space added_tokens_decoder legacy",
  "clean_up_tokenization_spaces",
  // Batches, limits of length, and other libraries' classes.
  "model_max_length max_length truncation truncation_side truncation_strategy padding padding_side stride pad_to_multiple_of",
  "pad_token_type_id model_input_names tokenizer_class processor_class tokenizer_type backend is_local local_files_only",
  "files_loaded name_or_path tokenizer_file vocab_file merges_file special_tokens_map_file use_fast from_slow verbose",
  "return_token_type_ids max_len init_inputs transformers_version unsloth_version _commit_hash fix_mistral_regex",
  // Also in tokenizer.json, which takes precedence.
  "errors sp_model_kwargs use_default_system_prompt spaces_between_special_tokens add_dummy_prefix_space split_special_tokens",
  "response_schema response_template chat_control_tokens image_token video_token audio_token auto_map",
  "image_token_id boi_token eoi_token",
)

/** Warns of unknown keys of tokenizer_config.json, and of Python code that is not executed. */
export function checkTokenizerKeys(file: string, json: Readonly<Record<string, unknown>>): void {
  // Special tokens may have any name with this suffix, by which templates access them.
  warnOfUnknownKeys(file, json, { has: (key) => known.has(key) || key.endsWith("_token") })
  if (json.auto_map !== undefined)
    warnOnce(`${file}: auto_map refers to custom Python code, which is never executed; tokenizer.json is used instead.`)
}
