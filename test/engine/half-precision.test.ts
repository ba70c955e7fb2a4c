import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it } from "vitest"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import type { ModelConfig } from "../../src/model-files/model-config.ts"
import { tensorShapes } from "../../src/model-files/model-tensors.ts"
import { writeModelConfig } from "../../src/model-files/write-config.ts"

// An embedding of 65,536 numbers: every pattern of 16 bits once.
const config: ModelConfig = {
  architecture: "Llama",
  vocabularySize: 32_768,
  hiddenSize: 2,
  intermediateSize: 2,
  layers: 1,
  heads: 1,
  keyValueHeads: 1,
  headSize: 2,
  rmsNormEpsilon: 1e-6,
  ropeTheta: 1e4,
  tieEmbeddings: true,
  queryKeyValueBias: false,
  queryKeyNorm: false,
  maxPositions: 8,
}

/** IEEE binary16: sign, 5 bits of exponent, 10 of fraction. */
function float16(bits: number): number {
  const [sign, exponent, fraction] = [bits >> 15 ? -1 : 1, (bits >> 10) & 31, bits & 1023]
  if (exponent === 31) return fraction ? NaN : sign * Infinity
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25))
}

/** The upper half of a float32. */
function bfloat16(bits: number): number {
  return new Float32Array(Uint32Array.of(bits << 16).buffer)[0]!
}

it.each([
  ["F16", float16],
  ["BF16", bfloat16],
] as const)("reads every %s there is", async (dtype, decode) => {
  const folder = await mkdtemp(join(tmpdir(), "gigpo-"))
  try {
    await writeModelConfig(folder, config, { dtype: "BF16" })
    const header: Record<string, unknown> = {}
    let bytes = 0
    for (const [name, shape] of tensorShapes(config)) {
      const size = 2 * shape.reduce((product, extent) => product * extent)
      header[name] = { dtype, shape, data_offsets: [bytes, bytes + size] }
      bytes += size
    }
    const json = Buffer.from(JSON.stringify(header))
    const length = Buffer.alloc(8)
    length.writeBigUInt64LE(BigInt(json.length))
    const data = Buffer.alloc(bytes)
    for (let pattern = 0; pattern < 65_536; pattern++) data.writeUInt16LE(pattern, 2 * pattern)
    await writeFile(join(folder, "model.safetensors"), Buffer.concat([length, json, data]))

    const policy = await NativePolicy.open(folder)
    const found = await policy.tensor("model.embed_tokens.weight")
    await policy.dispose()
    const wanted = Float32Array.from({ length: 65_536 }, (_, pattern) => decode(pattern))
    // Object.is: NaN is NaN, and -0 is not 0.
    expect(wanted.findIndex((value, pattern) => !Object.is(value, found[pattern]))).toBe(-1)
  } finally {
    await rm(folder, { recursive: true })
  }
})
