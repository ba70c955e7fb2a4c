import { type GgufSource, type TypedValue, writeGguf } from "../../../src/model-files/gguf/write.ts"

const u32 = (value: number): TypedValue => ({ type: "uint32", value })

/** Metadata of a model of the Llama family with one layer of four heads. */
export function modelMetadata(hidden: number): Map<string, TypedValue> {
  return new Map<string, TypedValue>([
    ["general.architecture", { type: "string", value: "llama" }],
    ["llama.block_count", u32(1)],
    ["llama.context_length", u32(64)],
    ["llama.embedding_length", u32(hidden)],
    ["llama.feed_forward_length", u32(hidden)],
    ["llama.attention.head_count", u32(4)],
    ["llama.attention.head_count_kv", u32(2)],
    ["llama.attention.layer_norm_rms_epsilon", { type: "float32", value: 1e-5 }],
  ])
}

/** Tensors of that model, zeros but for the embedding. */
export function modelTensors(
  hidden: number,
  rows: number,
  embedding: { type: string; bytes: Uint8Array },
): GgufSource[] {
  const zeros = (name: string, ...shape: number[]): GgufSource => ({
    name,
    type: "F32",
    shape,
    chunks: () => [new Uint8Array(4 * shape.reduce((a, b) => a * b, 1))],
  })
  const layer = (name: string, ...shape: number[]) => zeros(`blk.0.${name}.weight`, ...shape)
  return [
    { name: "token_embd.weight", type: embedding.type, shape: [rows, hidden], chunks: () => [embedding.bytes] },
    layer("attn_norm", hidden),
    layer("attn_q", hidden, hidden),
    layer("attn_k", hidden / 2, hidden),
    layer("attn_v", hidden / 2, hidden),
    layer("attn_output", hidden, hidden),
    layer("ffn_norm", hidden),
    layer("ffn_gate", hidden, hidden),
    layer("ffn_up", hidden, hidden),
    layer("ffn_down", hidden, hidden),
    zeros("output_norm.weight", hidden),
  ]
}

/** Writes a GGUF file of a model without a tokenizer. */
export async function writeModel(
  path: string,
  { hidden, rows, embedding }: { hidden: number; rows: number; embedding: { type: string; bytes: Uint8Array } },
): Promise<void> {
  await writeGguf(path, modelMetadata(hidden), modelTensors(hidden, rows, embedding))
}
