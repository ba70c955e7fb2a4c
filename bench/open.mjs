// Time to open a model of Qwen2.5-0.5B's shape in bf16, as published, from files in the system's cache. Lower bounds for comparison: reading the
// bytes once, and touching the memory of fp32 weights.
import { mkdtemp, open, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { NativePolicy } from "gigpo"
import { describeMachine, markdownTable, median, writeResult } from "./machine.mjs"

const [hidden, intermediate, layers, vocabulary, kv, runs] = [896, 4864, 24, 151936, 128, 5]

const directory = await mkdtemp(join(tmpdir(), "gigpo-open-"))
const bytes = await writeModel()
const path = join(directory, "model.safetensors")

const seconds = async (work) => {
  const [started, cpu] = [performance.now(), process.cpuUsage()]
  await work()
  const { user, system } = process.cpuUsage(cpu)
  return { wall: (performance.now() - started) / 1000, cpu: (user + system) / 1e6 }
}
const read = async () => {
  const [file, chunk] = [await open(path), Buffer.alloc(2 ** 24)]
  for (let at = 0; at < bytes; at += chunk.length) await file.read(chunk, 0, chunk.length, at)
  await file.close()
}
const touch = async () => {
  const memory = new Uint8Array(2 * bytes)
  for (let at = 0; at < memory.length; at += 4096) memory[at] = 1
}
const openModel = async () => await (await NativePolicy.open(directory, { maxPositions: 2048 })).dispose()

await read()
const measured = { "opening it": [], "reading the file": [], "touching that memory": [] }
for (let i = 0; i < runs; i++) {
  measured["opening it"].push(await seconds(openModel))
  measured["reading the file"].push(await seconds(read))
  measured["touching that memory"].push(await seconds(touch))
}
await rm(directory, { recursive: true })

const rows = Object.entries(measured).map(([name, times]) => [
  name,
  median(times.map(({ wall }) => wall)).toFixed(2),
  Math.min(...times.map(({ wall }) => wall)).toFixed(2),
  median(times.map(({ cpu }) => cpu)).toFixed(2),
])
await writeResult(
  "open",
  `# Opening a model

Qwen2.5-0.5B's shape in bf16, ${(bytes / 1e9).toFixed(2)} GB in one file, which the system has in memory already; ${runs} times each, by turns.
${describeMachine()}

${markdownTable([["", "median, s", "best, s", "processor time, s"], ...rows])}`,
)

/** Writes a model with random weights of small deviation. Returns the length of the file. */
async function writeModel() {
  const tensors = []
  const add = (name, ...shape) => tensors.push([name, shape])
  add("model.embed_tokens.weight", vocabulary, hidden)
  for (let layer = 0; layer < layers; layer++) {
    const at = `model.layers.${layer}.`
    for (const norm of ["input_layernorm", "post_attention_layernorm"]) add(`${at}${norm}.weight`, hidden)
    for (const [name, rows] of Object.entries({ q: hidden, k: kv, v: kv })) {
      add(`${at}self_attn.${name}_proj.weight`, rows, hidden)
      add(`${at}self_attn.${name}_proj.bias`, rows)
    }
    add(`${at}self_attn.o_proj.weight`, hidden, hidden)
    for (const name of ["gate", "up"]) add(`${at}mlp.${name}_proj.weight`, intermediate, hidden)
    add(`${at}mlp.down_proj.weight`, hidden, intermediate)
  }
  add("model.norm.weight", hidden)

  const header = {}
  let end = 0
  for (const [name, shape] of tensors) {
    const begin = end
    end += 2 * shape.reduce((a, b) => a * b)
    header[name] = { dtype: "BF16", shape, data_offsets: [begin, end] }
  }
  const text = Buffer.from(JSON.stringify(header))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(text.length))
  // Numbers of either sign between 2^-8 and 2^-5: sign, exponent 119 to 121, fraction.
  const block = Uint16Array.from({ length: 2 ** 20 }, (_, i) => ((i * 40503) & 0x80ff) | ((119 + (i % 3)) << 7))
  const file = await open(join(directory, "model.safetensors"), "w")
  await file.write(Buffer.concat([length, text]))
  for (let at = 0; at < end; at += block.byteLength)
    await file.write(new Uint8Array(block.buffer, 0, Math.min(block.byteLength, end - at)))
  await file.close()
  const config = {
    architectures: ["Qwen2ForCausalLM"],
    model_type: "qwen2",
    hidden_size: hidden,
    intermediate_size: intermediate,
    num_hidden_layers: layers,
    num_attention_heads: 14,
    num_key_value_heads: 2,
    vocab_size: vocabulary,
    max_position_embeddings: 32768,
    rms_norm_eps: 1e-6,
    rope_theta: 1e6,
    tie_word_embeddings: true,
    hidden_act: "silu",
  }
  await writeFile(join(directory, "config.json"), JSON.stringify(config))
  return 8 + text.length + end
}
