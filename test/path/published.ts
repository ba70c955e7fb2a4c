import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { byteCharacters } from "../../src/tokenizer/byte-level.ts"
import { preTokenizers } from "../../src/tokenizer/gguf/pre-tokenizers.ts"
import { Random } from "../../src/util/random.ts"

const special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
/** Pairs that are merged, in the order of their ranks. */
const merges = ["t h", "th e", "Ġ the", "i n", "a n", "o n", "r e", "e r", "Ġ a", "Ġ t"]

const chatTemplate =
  "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"

/**
 * Files of a tiny model with random weights as they are published on the Hub: the Llama architecture, ChatML, and a byte-level tokenizer with
 * the pre-tokenizer of Llama 3, which llama.cpp knows.
 */
export async function publishedModel(): Promise<Record<string, Buffer>> {
  const folder = await mkdtemp(join(tmpdir(), "gigpo-published-"))
  const { normalizer, pre_tokenizer, ignore_merges } = preTokenizers.get("llama-bpe")!
  const tokens = [...byteCharacters, ...merges.map((pair) => pair.replace(" ", ""))]
  const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: true }
  const tokenizer = {
    version: "1.0",
    added_tokens: special.map((content, i) => ({ id: tokens.length + i, content, ...flags })),
    normalizer,
    pre_tokenizer,
    post_processor: null,
    decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: { type: "BPE", ignore_merges, vocab: Object.fromEntries(tokens.map((token, id) => [token, id])), merges },
  }
  const config = { bos_token: special[1], eos_token: special[2], pad_token: special[0], chat_template: chatTemplate }
  const files = {
    "tokenizer.json": tokenizer,
    "tokenizer_config.json": { ...config, clean_up_tokenization_spaces: false },
    "generation_config.json": { eos_token_id: tokens.length + 2, pad_token_id: tokens.length },
  }
  const shape = {
    ...({ architecture: "Llama", vocabularySize: tokens.length + special.length, hiddenSize: 32 } as const),
    ...{ intermediateSize: 64, layers: 2, heads: 4, keyValueHeads: 2, headSize: 8, rmsNormEpsilon: 1e-5 },
    ...{ ropeTheta: 10_000, tieEmbeddings: true, queryKeyValueBias: false, queryKeyNorm: false, maxPositions: 1024 },
  }
  {
    await using policy = await NativePolicy.create(shape, new Random(11), {
      device: "cpu",
      threads: 1,
      training: false,
      deviation: 0.3,
    })
    await policy.save(folder)
  }
  for (const [name, json] of Object.entries(files)) await writeFile(join(folder, name), JSON.stringify(json))
  const names = (await readdir(folder)).filter((name) => name !== "gigpo.json")
  const read = names.map(async (name) => [name, await readFile(join(folder, name))] as const)
  const found = Object.fromEntries(await Promise.all(read))
  await rm(folder, { recursive: true })
  return found
}
