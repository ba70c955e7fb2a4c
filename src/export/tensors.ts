import type { GgufConventions } from "../model-files/gguf/conventions.ts"
import { isNorm } from "../model-files/gguf/families.ts"
import { type Heads, rotaryHeads, toPairs } from "../model-files/gguf/rotary-rows.ts"
import type { ReadableGgufType } from "../model-files/gguf/types.ts"
import type { TensorFiles } from "../model-files/safetensors.ts"
import { native } from "../native/native.ts"

/**
 * Converts a tensor to another type, in chunks. Rows of query and key projections are put in the order that the family has in GGUF.
 *
 * @param name - Hugging Face name.
 */
export async function* convertTensor(
  files: TensorFiles,
  name: string,
  type: string,
  { family, heads }: { readonly family: GgufConventions; readonly heads: Heads },
): AsyncGenerator<Uint8Array> {
  const { dtype, shape, bytes } = files.info(name)
  const parts = family.interleaved ? rotaryHeads(name, heads) : undefined
  if (parts === undefined) {
    const offset = isNorm(name) ? family.normOffset : undefined
    for await (const chunk of files.read(name)) yield await convert(chunk, dtype, type, offset)
    return
  }
  const [stored, rows] = [new Uint8Array(bytes), shape[0]! / parts]
  let filled = 0
  for await (const chunk of files.read(name)) {
    stored.set(chunk, filled)
    filled += chunk.length
  }
  const head = new Uint8Array(bytes / parts)
  for (let at = 0; at < bytes; at += head.length) {
    toPairs(stored.subarray(at), head, { at: 0, rows, rowBytes: head.length / rows })
    yield await convert(head, dtype, type)
  }
}

async function convert(bytes: Uint8Array, from: ReadableGgufType, to: string, offset = 0): Promise<Uint8Array> {
  if (from === to && offset === 0) return bytes
  const values = await native().dequantize(from, bytes)
  return await native().quantize(to, offset === 0 ? values : values.map((value) => value + offset))
}
