import { GigpoError } from "../../util/errors.ts"
import { ChunkBuffers, type TensorFiles, type TensorInfo } from "../safetensors.ts"
import { ggufFamilies, hubName, ropeFactors } from "./families.ts"
import { badGguf, type GgufTensor } from "./metadata.ts"
import type { GgufFile } from "./open.ts"
import { type Heads, rotaryHeads, toHalves } from "./rotary-rows.ts"
import type { ReadableGgufType } from "./types.ts"

const chunkBytes = 16 * 2 ** 20

/**
 * Returns the tensors of a GGUF file under their Hugging Face names, in the order of their bytes. Query and key projections of the Llama
 * family have their rows in Hugging Face's order. `close` closes the file.
 *
 * @param model - numbers of heads of the query and key projections.
 */
export function ggufTensors(file: GgufFile, model: Heads): TensorFiles {
  const { path, metadata, tensors } = file
  const family = ggufFamilies[metadata.get("general.architecture") as string]!
  const byName = new Map<string, GgufTensor>()
  for (const [name, tensor] of tensors) {
    if (name === ropeFactors) continue
    const hub = hubName(name)
    if (byName.has(hub)) throw badGguf(path, `two of its tensors have the name ${hub}`)
    byName.set(hub, tensor)
  }
  let closed = false

  const find = (name: string): GgufTensor => {
    const tensor = byName.get(name)
    if (!tensor) throw badGguf(path, `it has no tensor for ${name}`)
    if (!tensor.type.readable)
      throw new GigpoError(
        "BAD_MODEL",
        `${path}: ${name} is stored as ${tensor.type.name}, which is not supported. Use a file with another quantization, such as Q8_0 or Q4_K_M.`,
      )
    return tensor
  }
  const info = (name: string): TensorInfo => {
    const { type, shape, bytes } = find(name)
    return { dtype: type.name as ReadableGgufType, shape, bytes }
  }

  async function* read(
    name: string,
    buffers = new ChunkBuffers(),
  ): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined> {
    const tensor = find(name)
    const { bytes, shape, type } = tensor
    const heads = family.interleaved ? rotaryHeads(name, model) : undefined
    const rows = heads === undefined ? 1 : shape[0]! / heads
    const unit = heads === undefined ? type.bytes : bytes / heads
    if (!Number.isInteger(rows / 2) && heads !== undefined)
      throw badGguf(path, `${name} has ${shape[0]} rows for ${heads} heads`)
    const step = Math.max(1, Math.floor(chunkBytes / unit)) * unit
    const stored = heads === undefined ? undefined : new Uint8Array(Math.min(step, bytes))
    for (let at = 0; at < bytes; at += step) {
      if (closed) throw new GigpoError("DISPOSED", `${path} was closed before ${name} was read to its end.`)
      const chunk = buffers.take(Math.min(step, bytes - at))
      const into = stored?.subarray(0, chunk.length) ?? chunk
      await file.read(tensor, into, at)
      if (stored)
        for (let head = 0; head < chunk.length; head += unit)
          toHalves(stored, chunk, { at: head, rows, rowBytes: unit / rows })
      yield chunk
    }
  }

  return {
    names: [...byName.keys()],
    metadata: new Map(),
    info,
    read,
    close: async () => {
      if (closed) return
      closed = true
      await file.close()
    },
  }
}
