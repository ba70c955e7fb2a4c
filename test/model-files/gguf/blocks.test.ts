import { createHash, randomUUID } from "node:crypto"
import { readFileSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { NativePolicy } from "../../../src/engine/native/native-policy.ts"
import { ggufTypes } from "../../../src/model-files/gguf/types.ts"
import { native } from "../../../src/native/native.ts"
import { Random } from "../../../src/util/random.ts"
import { writeModel } from "./model.ts"

interface Expected {
  readonly blocks: number
  readonly types: Readonly<Record<string, { scales: number[]; sha256: string; first: number[] }>>
  readonly quantized: Readonly<Record<string, string>>
}
const expected = JSON.parse(readFileSync("test/fixtures/gguf/blocks.json", "utf8")) as Expected
const typeOf = (name: string) => ggufTypes.find((type) => type.name === name)!

/** The blocks of scripts/fixtures/make_gguf.py. */
function blocksOf(name: string): Uint8Array {
  const { bytes } = typeOf(name)
  const result = new Uint8Array(expected.blocks * bytes)
  let state = [...name].reduce((sum, letter) => sum + letter.charCodeAt(0), 0)
  for (let i = 0; i < result.length; i++) {
    state = Number((BigInt(state) * 1103515245n + 12345n) & 0x7fffffffn)
    result[i] = (state >> 16) & 255
  }
  for (const at of expected.types[name]!.scales) for (let i = at; i < result.length; i += bytes) result[i]! &= 0xbf
  return result
}

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-gguf-"))
})
afterEach(async () => {
  await rm(folder, { recursive: true })
})

/** Numbers of one tensor as the engine has them after it opened a GGUF file. */
async function opened(type: string, bytes: Uint8Array): Promise<Float32Array> {
  const path = join(folder, `${randomUUID()}.gguf`)
  const { elements } = typeOf(type)
  await writeModel(path, {
    hidden: 256,
    rows: ((bytes.length / typeOf(type).bytes) * elements) / 256,
    embedding: { type, bytes },
  })
  await using policy = await NativePolicy.open(path, { training: false, device: "cpu", threads: 2 })
  return await policy.tensor("model.embed_tokens.weight")
}

describe("every number format is read with the bits that gguf-py computes", () => {
  it.each(Object.keys(expected.types))("%s", async (type) => {
    const found = await opened(type, blocksOf(type))
    const { first, sha256 } = expected.types[type]!
    expect([...found.subarray(0, 4)]).toEqual(first)
    expect(
      createHash("sha256")
        .update(new Uint8Array(found.buffer, found.byteOffset, found.byteLength))
        .digest("hex"),
    ).toBe(sha256)
  })

  it("the fixture has every block format that is read", () => {
    const blocks = ggufTypes.filter(({ readable, elements }) => readable && elements > 1)
    expect(Object.keys(expected.types).sort()).toEqual(blocks.map(({ name }) => name).sort())
  })
})

describe("quantize", () => {
  const random = new Random(7)
  const values = Float32Array.from(
    { length: 4096 },
    () => 0.05 * Math.sqrt(-2 * Math.log(1 - random.uniform())) * Math.cos(2 * Math.PI * random.uniform()),
  )
  const loss = (found: Float32Array) =>
    Math.sqrt(
      found.reduce((sum, value, i) => sum + (value - values[i]!) ** 2, 0) /
        values.reduce((sum, value) => sum + value ** 2, 0),
    )

  it.each(Object.entries(expected.quantized))("%s has the bits that gguf-py computes", async (type, sha256) => {
    let state = 1
    const numbers = Float32Array.from({ length: 8192 }, () => {
      state = Number((BigInt(state) * 1103515245n + 12345n) & 0x7fffffffn)
      return (((state >> 8) & 0xffff) - 32768) / 2 ** 18
    })
    expect(
      createHash("sha256")
        .update(await native().quantize(type, numbers))
        .digest("hex"),
    ).toBe(sha256)
  })

  // Relative errors of normal numbers; those of a format with one bit less are about twice as large.
  it.each([
    ["F32", 0],
    ["F16", 3e-4],
    ["BF16", 2.4e-3],
    ["Q8_0", 6.5e-3],
    ["Q6_K", 2e-2],
    ["Q5_0", 5.2e-2],
    ["Q4_K", 7.5e-2],
    ["Q4_0", 0.105],
  ])("%s loses at most %d of normal numbers", async (type, most) => {
    const found = loss(await opened(type, await native().quantize(type, values)))
    expect(found).toBeLessThanOrEqual(most)
    expect(found).toBeGreaterThanOrEqual(most / 2)
  })

  it.each(["Q8_0", "Q4_0", "Q5_0", "Q4_K", "Q6_K"])("%s keeps zeros, constants and one large number", async (type) => {
    const zeros = await opened(type, await native().quantize(type, new Float32Array(512)))
    expect(zeros.every((value) => value === 0)).toBe(true)
    const tiny = await opened(type, await native().quantize(type, new Float32Array(512).fill(1e-44)))
    expect(tiny.every((value) => value === 0)).toBe(true)
    const peak = new Float32Array(512)
    peak[3] = -2
    const found = await opened(type, await native().quantize(type, peak))
    expect(found[3]).toBeCloseTo(-2, 1)
    expect(Math.abs(found[200]!)).toBeLessThan(1e-6)
  })

  it("rejects numbers that are not finite, parts of blocks, and formats that are only read", async () => {
    await expect(native().quantize("Q8_0", new Float32Array(32).fill(Number.NaN))).rejects.toThrow("not finite")
    await expect(native().quantize("Q8_0", new Float32Array(32).fill(1e9))).rejects.toThrow("range of F16")
    await expect(native().quantize("BF16", Float32Array.of(3.4e38))).rejects.toThrow("range of BF16")
    expect(() => native().quantize("Q8_0", new Float32Array(33))).toThrow("whole number of blocks")
    expect(() => native().quantize("IQ4_XS", new Float32Array(256))).toThrow("Conversion to this type is not supported")
    expect(() => native().quantize("Q9_9", new Float32Array(256))).toThrow("type")
  })
})
