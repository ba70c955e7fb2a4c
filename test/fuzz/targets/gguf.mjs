// GGUF files with a tokenizer, whole and their metadata alone, opened as for sampling.
import { readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { NativePolicy } from "../../../modules/engine/native/native-policy.js"
import { writeGguf } from "../../../modules/model-files/gguf/write.js"
import { Tokenizer } from "../../../modules/tokenizer/tokenizer.js"

const small = { device: "cpu", threads: 1, kvCacheBytes: 2 ** 20, microBatchTokens: 64, training: false }
const hidden = 32
const bytes = Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`)
const tokens = ["<unk>", "<s>", "</s>", ...bytes, "▁t", "he", "▁the", "▁", "t", "h", "e"]
const kindOf = (id) => (id === 0 ? 2 : id < 3 ? 3 : id < 259 ? 6 : 1)

const string = (value) => ({ type: "string", value })
const u32 = (value) => ({ type: "uint32", value })
const metadata = {
  "general.architecture": string("llama"),
  "llama.block_count": u32(1),
  "llama.context_length": u32(64),
  "llama.embedding_length": u32(hidden),
  "llama.feed_forward_length": u32(hidden),
  "llama.attention.head_count": u32(4),
  "llama.attention.head_count_kv": u32(2),
  "llama.attention.layer_norm_rms_epsilon": { type: "float32", value: 1e-5 },
  "tokenizer.ggml.model": string("llama"),
  "tokenizer.ggml.tokens": { type: "strings", value: tokens },
  "tokenizer.ggml.scores": { type: "float32s", value: tokens.map((_, id) => (id < 259 ? 0 : 259 - id)) },
  "tokenizer.ggml.token_type": { type: "int32s", value: tokens.map((_, id) => kindOf(id)) },
  "tokenizer.ggml.unknown_token_id": u32(0),
  "tokenizer.ggml.bos_token_id": u32(1),
  "tokenizer.ggml.eos_token_id": u32(2),
  "tokenizer.chat_template": string("{% for m in messages %}{{ m['content'] }}{% endfor %}"),
}
const tensor = (name, ...shape) => {
  const size = shape.reduce((product, one) => product * one, 1)
  return { name: `${name}.weight`, type: "F32", shape, chunks: () => [new Uint8Array(4 * size)] }
}
const square = ["attn_q", "attn_output", "ffn_gate", "ffn_up", "ffn_down"]
const tensors = [
  tensor("token_embd", tokens.length, hidden),
  ...square.map((name) => tensor(`blk.0.${name}`, hidden, hidden)),
  ...["attn_k", "attn_v"].map((name) => tensor(`blk.0.${name}`, hidden / 2, hidden)),
  ...["attn_norm", "ffn_norm"].map((name) => tensor(`blk.0.${name}`, hidden)),
  tensor("output_norm", hidden),
]

export async function prepare(scratch) {
  process.env.GIGPO_STATE = join(scratch, "state")
  const path = join(scratch, "model.gguf")
  await writeGguf(path, new Map(Object.entries(metadata)), tensors)
  const whole = readFileSync(path)
  // The zeros of the tensors are most of the file, and there is nothing to change in them.
  const head = whole.subarray(0, whole.length - 4 * hidden * (tokens.length + 6 * hidden))
  const rest = whole.subarray(head.length)
  return {
    seeds: [{ name: "whole", bytes: whole }, ...Array(4).fill({ name: "head", bytes: head })],
    async run({ name, bytes }) {
      rmSync(process.env.GIGPO_STATE, { recursive: true, force: true })
      writeFileSync(path, name === "head" ? Buffer.concat([bytes, rest]) : bytes)
      const opened = await Promise.allSettled([NativePolicy.open(path, small), Tokenizer.open(path)])
      for (const { value } of opened) await value?.[Symbol.asyncDispose]()
      for (const { reason } of opened) if (reason) throw reason
    },
  }
}
