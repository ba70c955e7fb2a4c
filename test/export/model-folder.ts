import { cp, readFile, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { preTokenizers } from "../../src/tokenizer/gguf/pre-tokenizers.ts"
import { architectureKinds, architecturePath, modelPath } from "../engine/fixtures.ts"

const template =
  "{% for message in messages %}{{ '<s>' + message['content'] + '<e>' }}{% endfor %}{% if add_generation_prompt %}<s>{% endif %}"

/** Copies a fixture and adds a tokenizer of 44 tokens: letters, space and digits, three merges, and two special tokens. */
export async function modelFolder(fixture: string, folder: string, pre = "qwen2"): Promise<void> {
  const kind = architectureKinds.find((name) => name === fixture)
  await cp(kind ? architecturePath(kind) : modelPath(fixture), folder, { recursive: true })
  const letters = [..."abcdefghijklmnopqrstuvwxyz0123456789Ġ"]
  const tokens = [...letters, "th", "the", "Ġthe", "ą"]
  const added = ["<s>", "<e>"].map((content, i) => ({ id: tokens.length + i, content, special: true, ...flags }))
  const { normalizer, pre_tokenizer, ignore_merges } = preTokenizers.get(pre)!
  const tokenizer = {
    version: "1.0",
    added_tokens: added,
    normalizer,
    pre_tokenizer,
    post_processor: null,
    decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: {
      type: "BPE",
      ignore_merges,
      vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
      merges: ["t h", "th e", "Ġ the"],
    },
  }
  await writeFile(join(folder, "tokenizer.json"), JSON.stringify(tokenizer))
  const config = { bos_token: "<s>", eos_token: "<e>", chat_template: template, clean_up_tokenization_spaces: false }
  await writeFile(join(folder, "tokenizer_config.json"), JSON.stringify(config))
  await rm(join(folder, "generation_config.json"), { force: true })
  await changeConfig(folder, (model) => {
    model.eos_token_id = tokens.length + 1
    if (fixture === "llama") Object.assign(model, llama3)
    if (fixture === "gemma3") Object.assign(model, gemma)
    if (fixture === "yarn") Object.assign(model, yarn)
  })
}

/** A GGUF file can express YaRN with the usual bounds only. */
const yarn = {
  rope_parameters: undefined,
  rope_theta: 300,
  rope_scaling: { rope_type: "yarn", factor: 4, original_max_position_embeddings: 32 },
}

/** A GGUF file can express Gemma 3 with the usual layers without windows and scale of scores only. */
const gemma = { layer_types: undefined, query_pre_attn_scalar: 8 }

/** A GGUF file can express the rope scaling of the published Llama 3 models only. */
const llama3 = {
  rope_parameters: undefined,
  rope_scaling: {
    ...{ rope_theta: 500_000, rope_type: "llama3", factor: 8, low_freq_factor: 1, high_freq_factor: 4 },
    original_max_position_embeddings: 8192,
  },
}

const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false }

/** Changes fields of a folder's config.json. */
async function changeConfig(folder: string, change: (config: Record<string, unknown>) => void): Promise<void> {
  const path = join(folder, "config.json")
  const config = JSON.parse(await readFile(path, "utf8")) as Record<string, unknown>
  change(config)
  await writeFile(path, JSON.stringify(config))
}
