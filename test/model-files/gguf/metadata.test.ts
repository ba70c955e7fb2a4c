import { mkdtemp, readFile, rm, truncate, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { NativePolicy } from "../../../src/engine/native/native-policy.ts"
import { parseGguf } from "../../../src/model-files/gguf/metadata.ts"
import { openGguf } from "../../../src/model-files/gguf/open.ts"
import { type GgufSource, type TypedValue, writeGguf } from "../../../src/model-files/gguf/write.ts"
import { readModelConfig } from "../../../src/model-files/model-config.ts"
import { Random } from "../../../src/util/random.ts"
import { modelMetadata, modelTensors } from "./model.ts"

let folder: string
let path: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-gguf-"))
  path = join(folder, "model.gguf")
})
afterEach(async () => {
  await rm(folder, { recursive: true })
})

const embedding = { type: "F32", bytes: new Uint8Array(8 * 64 * 4) }
const tensors = () => modelTensors(64, 8, embedding)
const text = (value: string): TypedValue => ({ type: "string", value })
const u32 = (value: number): TypedValue => ({ type: "uint32", value })

async function written(
  change: (metadata: Map<string, TypedValue>) => void = () => {},
  sources: GgufSource[] = tensors(),
): Promise<Buffer> {
  const metadata = modelMetadata(64)
  change(metadata)
  await writeGguf(path, metadata, sources)
  return await readFile(path)
}
const opening = () => NativePolicy.open(path, { training: false, device: "cpu" })

describe("the header", () => {
  it("gives back every kind of value, and tensors outermost dimension first", async () => {
    const values: [string, TypedValue][] = [
      ["a", u32(7)],
      ["b", { type: "float32", value: 0.5 }],
      ["c", { type: "bool", value: true }],
      ["d", text("é日")],
      ["e", { type: "strings", value: ["", "x"] }],
      ["f", { type: "int32s", value: [-1, 2] }],
      ["g", { type: "float32s", value: [0.25] }],
    ]
    await writeGguf(path, new Map(values), [
      { name: "t", type: "F16", shape: [2, 3], chunks: () => [new Uint8Array(12)] },
    ])
    const { metadata, tensors: found, close } = await openGguf(path)
    await close()
    expect([...metadata.values()]).toEqual([7, 0.5, true, "é日", ["", "x"], [-1, 2], [0.25]])
    expect(found.get("t")).toMatchObject({ shape: [2, 3], offset: 0, bytes: 12 })
  })

  it("is rejected at every length that cuts it off", async () => {
    const bytes = await written()
    const { start } = parseGguf(bytes, bytes.length, path)
    for (let length = 0; length < start; length += 7) {
      await truncate(path, length)
      await expect(openGguf(path)).rejects.toMatchObject({ code: "BAD_MODEL" })
      await writeFile(path, bytes)
    }
    await truncate(path, bytes.length - 1)
    await expect(openGguf(path)).rejects.toThrow("download is incomplete")
  })

  it("never crashes the parser, whatever bytes are changed", async () => {
    const bytes = await written()
    const { start } = parseGguf(bytes, bytes.length, path)
    const random = new Random(5)
    for (let i = 0; i < 3000; i++) {
      const changed = Buffer.from(bytes)
      for (let n = 0; n <= random.below(3); n++) changed[random.below(start)] = random.below(256)
      try {
        parseGguf(changed, changed.length, path)
      } catch (error) {
        expect(error).toMatchObject({ code: "BAD_MODEL" })
      }
    }
  })

  it("with arrays in arrays in arrays is rejected, however deep", async () => {
    const [u32, u64] = [
      (value: number) => Buffer.from(Uint32Array.of(value).buffer),
      (value: number) => Buffer.from(BigUint64Array.of(BigInt(value)).buffer),
    ]
    const array = 9
    const inner = Buffer.concat([u32(array), u64(1)])
    const head = [Buffer.from("GGUF"), u32(3), u64(0), u64(1), u64(1), Buffer.from("a"), u32(array)]
    await writeFile(path, Buffer.concat([...head, Buffer.alloc(inner.length * 100_000, inner)]))
    await expect(opening()).rejects.toMatchObject({
      code: "BAD_MODEL",
      message: expect.stringContaining("arrays are nested more than 4 deep"),
    })
  })

  const at = (bytes: Buffer, name: string) => bytes.indexOf(name) + name.length
  it.each<[string, (bytes: Buffer) => unknown, string]>([
    ["2^63 tensors", (bytes) => bytes.writeBigUInt64LE(2n ** 63n, 8), "the number of tensors is 9223372036854775808"],
    ["2^40 metadata keys", (bytes) => bytes.writeBigUInt64LE(2n ** 40n, 16), "metadata keys"],
    ["a key of 2^62 bytes", (bytes) => bytes.writeBigUInt64LE(2n ** 62n, 24), "the length of a metadata key"],
    ["another magic number", (bytes) => bytes.write("GGML", 0), "or a GGUF file"],
    ["big-endian numbers", (bytes) => bytes.writeUInt32BE(3, 4), "big-endian"],
    ["version 1", (bytes) => bytes.writeUInt32LE(1, 4), "version 1"],
    [
      "an unknown tensor type",
      (bytes) => bytes.writeUInt32LE(77, at(bytes, "token_embd.weight") + 4 + 16),
      "unknown type 77",
    ],
    [
      "a removed tensor type",
      (bytes) => bytes.writeUInt32LE(4, at(bytes, "token_embd.weight") + 4 + 16),
      "unknown type 4",
    ],
    ["nine dimensions", (bytes) => bytes.writeUInt32LE(9, at(bytes, "token_embd.weight")), "9 dimensions"],
    [
      "a dimension of 2^60",
      (bytes) => bytes.writeBigUInt64LE(2n ** 60n, at(bytes, "token_embd.weight") + 4),
      "a dimension",
    ],
    [
      "overlapping tensors",
      (bytes) => bytes.writeBigUInt64LE(0n, at(bytes, "blk.0.attn_norm.weight") + 4 + 8 + 4),
      "overlap",
    ],
    [
      "an offset off the alignment",
      (bytes) => bytes.writeBigUInt64LE(5n, at(bytes, "blk.0.attn_norm.weight") + 4 + 8 + 4),
      "alignment",
    ],
    [
      "an offset behind the end",
      (bytes) => bytes.writeBigUInt64LE(2n ** 40n, at(bytes, "output_norm.weight") + 4 + 8 + 4),
      "incomplete",
    ],
  ])("with %s is rejected", async (_, change, message) => {
    const bytes = await written()
    change(bytes)
    await writeFile(path, bytes)
    await expect(opening()).rejects.toMatchObject({ code: "BAD_MODEL", message: expect.stringContaining(message) })
  })
})

describe("the configuration", () => {
  it("is that of the metadata, with transformers' defaults", async () => {
    await written((metadata) => metadata.set("llama.rope.freq_base", { type: "float32", value: 500000 }))
    expect(await readModelConfig(path)).toEqual({
      architecture: "Llama",
      vocabularySize: 8,
      hiddenSize: 64,
      intermediateSize: 64,
      layers: 1,
      heads: 4,
      keyValueHeads: 2,
      headSize: 16,
      rmsNormEpsilon: 1e-5,
      ropeTheta: 500000,
      tieEmbeddings: true,
      queryKeyValueBias: false,
      queryKeyNorm: false,
      maxPositions: 64,
    })
  })

  it.each<[string, (metadata: Map<string, TypedValue>) => unknown, string]>([
    ["another architecture", (m) => m.set("general.architecture", text("mamba")), "mamba"],
    ["no architecture", (m) => m.delete("general.architecture"), "undefined"],
    ["experts", (m) => m.set("llama.expert_count", u32(8)), "mixture of 8 experts"],
    [
      "layers of different sizes",
      (m) => m.set("llama.feed_forward_length", { type: "int32s", value: [64, 32] }),
      "differs between layers",
    ],
    ["linear scaling", (m) => m.set("llama.rope.scaling.type", text("linear")), "linear"],
    [
      "YaRN in other ways",
      (m) =>
        m
          .set("llama.rope.scaling.type", text("yarn"))
          .set("llama.rope.scaling.yarn_ext_factor", { type: "float32", value: 0.5 }),
      "rope.scaling.yarn_ext_factor",
    ],
    [
      "a factor of scores without YaRN",
      (m) => m.set("llama.rope.scaling.attn_factor", { type: "float32", value: 2 }),
      "rope.scaling.attn_factor",
    ],
    ["a partial rotary dimension", (m) => m.set("llama.rope.dimension_count", u32(8)), "rope.dimension_count is 8"],
    ["one part of several", (m) => m.set("split.count", u32(3)), "one of 3 parts"],
    ["a size of 2^31", (m) => m.set("llama.block_count", u32(2 ** 31)), "num_hidden_layers"],
    ["a wrong alignment", (m) => m.set("general.alignment", u32(48)), "alignment"],
  ])("with %s is rejected", async (_, change, message) => {
    await written(change)
    await expect(opening()).rejects.toMatchObject({ code: "BAD_MODEL", message: expect.stringContaining(message) })
  })

  it("with rotary factors of no published model is rejected", async () => {
    const factors = (values: number[]): GgufSource => ({
      name: "rope_freqs.weight",
      type: "F32",
      shape: [8],
      chunks: () => [new Uint8Array(Float32Array.from(values).buffer)],
    })
    await written(undefined, [...tensors(), factors([1, 1, 2, 3, 5, 8, 13, 21])])
    await expect(opening()).rejects.toThrow("rope_freqs.weight")
  })

  it("with an unknown key of the architecture is used with a warning that names it", async () => {
    const warnings: string[] = []
    const listen = (warning: Error) => warnings.push(warning.message)
    process.on("warning", listen)
    await written((metadata) => metadata.set("llama.logit_trick", u32(1)))
    await using _ = await opening()
    await new Promise((resolve) => setImmediate(resolve))
    process.off("warning", listen)
    expect(warnings.join("\n")).toContain("llama.logit_trick")
  })

  it("with a tensor that no model has, one that is missing, or a type that is not read is rejected by name", async () => {
    const all = tensors()
    await written(undefined, [
      ...all,
      { name: "blk.0.ssm_a", type: "F32", shape: [8], chunks: () => [new Uint8Array(32)] },
    ])
    await expect(opening()).rejects.toThrow("blk.0.ssm_a")
    await written(
      undefined,
      all.filter(({ name }) => name !== "output_norm.weight"),
    )
    await expect(opening()).rejects.toThrow("model.norm.weight")
    const one = { type: "I32", bytes: new Uint8Array(8 * 64 * 4) }
    await written(undefined, modelTensors(64, 8, one))
    await expect(opening()).rejects.toThrow("I32")
  })
})
