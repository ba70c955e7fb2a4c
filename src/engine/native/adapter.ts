import type { NativeEngine } from "../../native/native.ts"
import { philox, type Random } from "../../util/random.ts"
import { settle } from "./started.ts"

// LoRA matrices have PEFT's names: base_model.model.<projection>.lora_A.weight [rank][in] and …lora_B.weight [out][rank].

const endA = ".lora_A.weight"

/** Elements per piece; small enough not to block the event loop. */
const pieceElements = 2 ** 18

/** Prefix of the tensor names in PEFT's files. */
const prefix = "base_model.model."

/** Initializes an adapter so that the policy equals its base model. */
export async function initializeAdapter(engine: NativeEngine, random: Random, signal?: AbortSignal): Promise<void> {
  await fillPairs(engine, random, signal)
  await copyWhole(engine, signal)
}

/** Copies the fully trained modules from the model. An untied head of a model with tied weights is copied from the embedding. */
async function copyWhole(engine: NativeEngine, signal?: AbortSignal): Promise<void> {
  for (const [index, { name, shape }] of engine.adapterParameters.entries()) {
    if (name.includes(".lora_")) continue
    const find = (wanted: string) => engine.parameters.findIndex((parameter) => parameter.name === wanted)
    const own = find(name.slice(prefix.length))
    const from = own < 0 ? find("model.embed_tokens.weight") : own
    const size = shape.reduce((a, b) => a * b, 1)
    for (let at = 0; at < size; at += pieceElements) {
      const values = await settle(() => engine.read("weights", from, at, Math.min(pieceElements, size - at)), signal)
      const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength)
      await settle(() => engine.write("adapter", index, at, bytes, "F32"), signal)
    }
  }
}

/**
 * Initializes every A as PEFT does, uniformly within ±1/√in (Kaiming with a = √5). B stays 0, so that the policy equals its base
 * model. Each value depends only on the random key, the name of the tensor and the position in it.
 */
async function fillPairs(engine: NativeEngine, random: Random, signal?: AbortSignal): Promise<void> {
  for (const [index, { name, shape }] of engine.adapterParameters.entries()) {
    if (!name.endsWith(endA)) continue
    const [rank, columns] = shape as [number, number]
    const { key } = random.derive(name)
    for (let at = 0; at < rank * columns; at += pieceElements) {
      const values = uniformValues(key, at, Math.min(pieceElements, rank * columns - at), 1 / Math.sqrt(columns))
      const bytes = new Uint8Array(values.buffer)
      await settle(() => engine.write("adapter", index, at, bytes, "F32"), signal)
    }
  }
}

/** Returns uniform values within ±bound, four per block of random bits; `at` must be a multiple of four. */
function uniformValues(key: readonly [number, number], at: number, count: number, bound: number): Float32Array {
  const values = new Float32Array(count)
  for (let i = 0; i < count; i += 4) {
    const block = (at + i) / 4
    const words = philox(key, [block >>> 0, Math.floor(block / 2 ** 32), 0, 0])
    for (let j = 0; j < 4 && i + j < count; j++) values[i + j] = bound * ((words[j]! + 0.5) / 2 ** 31 - 1)
  }
  return values
}
