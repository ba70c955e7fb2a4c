import { expect } from "vitest"
import type { TensorFiles } from "../../src/model-files/safetensors.ts"
import type { TensorSource } from "../../src/model-files/safetensors-writer.ts"
import { Random } from "../../src/util/random.ts"

/** A safetensors file byte by byte, so that it can be wrong. */
export function encode(header: string | Uint8Array, dataBytes = 0, claimed?: bigint): Uint8Array {
  const json = typeof header === "string" ? new TextEncoder().encode(header) : header
  const file = new Uint8Array(8 + json.length + dataBytes)
  new DataView(file.buffer).setBigUint64(0, claimed ?? BigInt(json.length), true)
  file.set(json, 8)
  for (let i = 0; i < dataBytes; i++) file[8 + json.length + i] = i + 1
  return file
}

/** A tensor's description in a header. */
export function tensor(dtype: string, shape: string, begin: number | string, end: number | string): string {
  return `{"dtype":"${dtype}","shape":${shape},"data_offsets":[${begin},${end}]}`
}

export async function bytesOf(files: TensorFiles, name: string): Promise<number[]> {
  const result: number[] = []
  for await (const chunk of files.read(name)) result.push(...chunk)
  return result
}

/** A tensor of random bytes, in one chunk. */
export function source(
  name: string,
  shape: number[],
  dtype: "F32" | "BF16" = "F32",
  random = new Random(1),
): TensorSource {
  const bytes = new Uint8Array(shape.reduce((a, b) => a * b, dtype === "F32" ? 4 : 2))
  for (let i = 0; i < bytes.length; i++) bytes[i] = random.below(256)
  return { name, dtype, shape, chunks: [bytes] }
}

export function sourceBytes({ chunks }: TensorSource): number[] {
  return [...(chunks as Uint8Array[])[0]!]
}

export const badModel = (pattern: RegExp): unknown =>
  expect.objectContaining({ code: "BAD_MODEL", message: expect.stringMatching(pattern) })
export const badArgument = (pattern: RegExp): unknown =>
  expect.objectContaining({ code: "BAD_ARGUMENT", message: expect.stringMatching(pattern) })
