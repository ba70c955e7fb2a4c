import type { FileHandle } from "node:fs/promises"
import { replaceFile } from "../../files/atomic-file.ts"
import { io } from "../../files/io-error.ts"
import { GigpoError } from "../../util/errors.ts"
import { ggufTypes } from "./types.ts"

/** Typed value of GGUF metadata; the format stores the type with each value. */
export type TypedValue =
  | { readonly type: "uint32" | "float32"; readonly value: number }
  | { readonly type: "bool"; readonly value: boolean }
  | { readonly type: "string"; readonly value: string }
  | { readonly type: "strings"; readonly value: readonly string[] }
  | { readonly type: "int32s"; readonly value: readonly number[] }
  | { readonly type: "float32s"; readonly value: readonly number[] }

/** Tensor to write. The bytes are requested when they are written, so that the whole model is never in memory. */
export interface GgufSource {
  readonly name: string
  /** Name of a type, such as F16 or Q8_0. */
  readonly type: string
  /** Outermost dimension first. */
  readonly shape: readonly number[]
  readonly chunks: () => AsyncIterable<Uint8Array> | Iterable<Uint8Array>
}

const alignment = 32
const codes = { uint32: 4, float32: 6, bool: 7, string: 8, array: 9, int32: 5 } as const

/**
 * Writes a GGUF file, version 3. A file at the path is replaced when the new one is complete.
 *
 * @throws GigpoError `BAD_ARGUMENT` if the number of bytes of a tensor does not match its type and shape; `IO`
 */
export async function writeGguf(
  path: string,
  metadata: ReadonlyMap<string, TypedValue>,
  tensors: readonly GgufSource[],
): Promise<void> {
  await replaceFile(path, async (file) => {
    await put(file, path, header(metadata, tensors))
    for (const tensor of tensors) await putTensor(file, path, tensor)
  })
}

/** Returns the size of a tensor in bytes, without padding. */
export function tensorBytes({ type, shape }: Pick<GgufSource, "type" | "shape">): number {
  const { elements, bytes } = typeOf(type)
  return (shape.reduce((a, b) => a * b, 1) / elements) * bytes
}

function typeOf(name: string) {
  const type = ggufTypes.find((one) => one.name === name)
  if (!type) throw new GigpoError("BAD_ARGUMENT", `${name} is not a tensor type of GGUF.`)
  return type
}

const padding = (bytes: number) => (alignment - (bytes % alignment)) % alignment

async function putTensor(handle: FileHandle, path: string, tensor: GgufSource): Promise<void> {
  const bytes = tensorBytes(tensor)
  let written = 0
  for await (const chunk of tensor.chunks()) {
    await put(handle, path, chunk)
    written += chunk.length
  }
  if (written !== bytes)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `The tensor ${tensor.name} has ${written} bytes; its type and shape need ${bytes}.`,
    )
  await put(handle, path, new Uint8Array(padding(bytes)))
}

async function put(handle: FileHandle, path: string, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.length; )
    done += (await io("write", path, handle.write(bytes, done, bytes.length - done))).bytesWritten
}

function header(metadata: ReadonlyMap<string, TypedValue>, tensors: readonly GgufSource[]): Uint8Array {
  const out = new Writer()
  out.bytes(Buffer.from("GGUF"))
  out.uint32(3)
  out.uint64(tensors.length)
  out.uint64(metadata.size)
  for (const [key, value] of metadata) {
    out.text(key)
    out.value(value)
  }
  let offset = 0
  for (const tensor of tensors) {
    out.text(tensor.name)
    out.uint32(tensor.shape.length)
    for (const dimension of [...tensor.shape].reverse()) out.uint64(dimension)
    out.uint32(typeOf(tensor.type).id)
    out.uint64(offset)
    const bytes = tensorBytes(tensor)
    offset += bytes + padding(bytes)
  }
  out.bytes(new Uint8Array(padding(out.length)))
  return out.finish()
}

class Writer {
  length = 0
  readonly #parts: Uint8Array[] = []

  bytes(bytes: Uint8Array): void {
    this.#parts.push(bytes)
    this.length += bytes.length
  }

  uint32(value: number): void {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32LE(value)
    this.bytes(bytes)
  }

  uint64(value: number): void {
    const bytes = Buffer.alloc(8)
    bytes.writeBigUInt64LE(BigInt(value))
    this.bytes(bytes)
  }

  text(value: string): void {
    const bytes = Buffer.from(value)
    this.uint64(bytes.length)
    this.bytes(bytes)
  }

  value(given: TypedValue): void {
    if (given.type === "strings") {
      this.#array(codes.string, given.value.length)
      for (const text of given.value) this.text(text)
    } else if (given.type === "int32s") {
      this.#array(codes.int32, given.value.length)
      this.bytes(new Uint8Array(Int32Array.from(given.value).buffer))
    } else if (given.type === "float32s") {
      this.#array(codes.float32, given.value.length)
      this.bytes(new Uint8Array(Float32Array.from(given.value).buffer))
    } else {
      this.uint32(codes[given.type])
      if (given.type === "string") this.text(given.value)
      else if (given.type === "bool") this.bytes(Uint8Array.of(given.value ? 1 : 0))
      else if (given.type === "uint32") this.uint32(given.value)
      else this.bytes(new Uint8Array(Float32Array.of(given.value).buffer))
    }
  }

  #array(code: number, length: number): void {
    this.uint32(codes.array)
    this.uint32(code)
    this.uint64(length)
  }

  finish(): Uint8Array {
    return Buffer.concat(this.#parts)
  }
}
