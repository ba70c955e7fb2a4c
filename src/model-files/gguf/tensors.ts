import { GigpoError } from "../../util/errors.ts"
import { ChunkBuffers, type TensorFiles, type TensorInfo } from "../safetensors.ts"
import { ggufFamily, hubName, isNorm, ropeFactors } from "./families.ts"
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
  const family = ggufFamily(metadata)!
  const byName = new Map<string, GgufTensor>()
  for (const [name, tensor] of tensors) {
    if (name === ropeFactors) continue
    const hub = hubName(name, family)
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
    if (family.normOffset && isNorm(name) && type.name !== "F32")
      throw badGguf(path, `${name} is stored as ${type.name}; norms must be F32`)
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
      if (family.normOffset && isNorm(name)) subtract(chunk, family.normOffset)
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

/** Subtracts a number from float32 values. The results are exact for values between half and twice the number. */
function subtract(bytes: Uint8Array, offset: number): void {
  const values = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  for (let at = 0; at < bytes.length; at += 4) values.setFloat32(at, values.getFloat32(at, true) - offset, true)
}
