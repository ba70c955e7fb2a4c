import type { NativeEngine, NativeParameter } from "../native.ts"
import { philox, type Random } from "../random.ts"
import type { AdapterConfig } from "./options.ts"
import type { TensorSource } from "./safetensors-writer.ts"
import { settle } from "./started.ts"
import { tensorSources } from "./tensor-transfer.ts"

// LoRA's pairs by PEFT's names: base_model.model.<projection>.lora_A.weight [rank][in] and …lora_B.weight [out][rank].

const prefix = "base_model.model."
const [endA, endB] = [".lora_A.weight", ".lora_B.weight"]

/** Projections that have a pair, as PEFT calls them. */
export const targetModules = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"] as const

/** So many elements at a time keep the event loop free. */
const pieceElements = 2 ** 18

/**
 * Fills every A as PEFT does, uniformly within ±1/√in (Kaiming with a = √5); B stays 0, so that the policy starts as its model.
 * Each value depends on the random's key, the tensor's name and its own place alone.
 */
export async function initializeAdapter(engine: NativeEngine, random: Random): Promise<void> {
  for (const [index, { name, shape }] of engine.adapterParameters.entries()) {
    if (!name.endsWith(endA)) continue
    const [rank, columns] = shape as [number, number]
    const { key } = random.fork(name)
    for (let at = 0; at < rank * columns; at += pieceElements) {
      const values = uniformValues(key, at, Math.min(pieceElements, rank * columns - at), 1 / Math.sqrt(columns))
      const bytes = new Uint8Array(values.buffer)
      await settle(() => engine.write("adapter", index, at, bytes, "F32"))
    }
  }
}

/** Four values a block of random bits, within ±bound; `at` is a multiple of four. */
function uniformValues(key: readonly [number, number], at: number, count: number, bound: number): Float32Array {
  const values = new Float32Array(count)
  for (let i = 0; i < count; i += 4) {
    const block = (at + i) / 4
    const words = philox(key, [block >>> 0, Math.floor(block / 2 ** 32), 0, 0])
    for (let j = 0; j < 4 && i + j < count; j++) values[i + j] = bound * ((words[j]! + 0.5) / 2 ** 31 - 1)
  }
  return values
}

/** The model's tensors with W + alpha / rank · B A in the place of every adapted W, a few rows at a time. */
export function mergedSources(engine: NativeEngine, { rank, alpha }: AdapterConfig): TensorSource[] {
  const indexOf = new Map(engine.adapterParameters.map(({ name }, index) => [name, index]))
  return tensorSources(engine, "weights").map((source, index) => {
    const pair = prefix + source.name.replace(/\.weight$/, "")
    const [a, b] = [indexOf.get(pair + endA), indexOf.get(pair + endB)]
    if (a === undefined || b === undefined) return source
    return { ...source, chunks: mergedChunks(engine, { index, a, b, shape: source.shape, rank, scale: alpha / rank }) }
  })
}

interface Projection {
  readonly index: number
  readonly a: number
  readonly b: number
  readonly shape: NativeParameter["shape"]
  readonly rank: number
  readonly scale: number
}

async function* mergedChunks(engine: NativeEngine, projection: Projection): AsyncGenerator<Uint8Array> {
  const { index, shape, rank, scale } = projection
  const [rows, columns] = shape as [number, number]
  // In doubles, which JavaScript computes with, and with rows of zeros up to a multiple of four.
  const a = new Float64Array(Math.ceil(rank / 4) * 4 * columns)
  a.set(await settle(() => engine.read("adapter", projection.a, 0, rank * columns)))
  const b = await settle(() => engine.read("adapter", projection.b, 0, rows * rank))
  const sum = new Float64Array(columns)
  const atOnce = Math.max(Math.floor(pieceElements / columns), 1)
  for (let first = 0; first < rows; first += atOnce) {
    const count = Math.min(atOnce, rows - first)
    const values = await settle(() => engine.read("weights", index, first * columns, count * columns))
    for (let row = 0; row < count; row++) {
      rowTimes(b.subarray((first + row) * rank, (first + row + 1) * rank), a, sum)
      for (let column = 0; column < columns; column++) values[row * columns + column]! += scale * sum[column]!
    }
    yield new Uint8Array(values.buffer, values.byteOffset, values.byteLength)
  }
}

/** sum = b A, four rows of A at a time. */
function rowTimes(b: Float32Array, a: Float64Array, sum: Float64Array): void {
  const columns = sum.length
  sum.fill(0)
  for (let r = 0; r < b.length; r += 4) {
    const [f0 = 0, f1 = 0, f2 = 0, f3 = 0] = [b[r], b[r + 1], b[r + 2], b[r + 3]]
    const [at0, at1, at2, at3] = [r * columns, (r + 1) * columns, (r + 2) * columns, (r + 3) * columns]
    for (let c = 0; c < columns; c++)
      sum[c]! += f0 * a[at0 + c]! + f1 * a[at1 + c]! + f2 * a[at2 + c]! + f3 * a[at3 + c]!
  }
}
