import { GigpoError } from "../../errors.ts"
import type { WeightDtype } from "../../model-files/safetensors.ts"
import type { TensorSource } from "../../model-files/safetensors-writer.ts"
import type { NativeBuffer, NativeLearner, NativeParameter } from "../../native.ts"
import { settle } from "./started.ts"

// Weights cross in pieces, so that a model is never in memory twice.

export type StoredBuffer = Exclude<NativeBuffer, "gradients">

/** Buffers of the whole model. */
const modelBuffers: readonly NativeBuffer[] = ["weights", "merged"]

const chunkElements = 4 * 2 ** 20

/** Copies one tensor's bytes into the learner. */
export async function writeTensor(
  learner: NativeLearner,
  buffer: StoredBuffer,
  index: number,
  dtype: WeightDtype,
  chunks: AsyncIterable<Uint8Array>,
  signal?: AbortSignal,
): Promise<void> {
  const width = dtype === "F32" ? 4 : 2
  let offset = 0
  for await (const bytes of chunks) {
    await settle(() => learner.write(buffer, index, offset, bytes, dtype), signal)
    offset += bytes.length / width
  }
}

/** What is trained: the adapter where there is one, else the model. Gradients and moments are of these. */
export function trainedParameters(learner: NativeLearner): readonly NativeParameter[] {
  const { adapterParameters } = learner
  return adapterParameters.length > 0 ? adapterParameters : learner.parameters
}

/** The tensors of a buffer, by their place in it. */
function parametersOf(learner: NativeLearner, buffer: NativeBuffer): readonly NativeParameter[] {
  return modelBuffers.includes(buffer) ? learner.parameters : trainedParameters(learner)
}

/** All tensors of a buffer, to be written to a file. Names of moments are prefixed, as in `firstMoment.model.norm.weight`. */
export function tensorSources(learner: NativeLearner, buffer: StoredBuffer, signal?: AbortSignal): TensorSource[] {
  return parametersOf(learner, buffer).map(({ name, shape }, index) => ({
    name: modelBuffers.includes(buffer) || buffer === "adapter" ? name : `${buffer}.${name}`,
    dtype: "F32",
    shape,
    chunks: chunksOf(learner, buffer, index, sizeOf(shape), signal),
  }))
}

/** One tensor by its name, the model's or the adapter's. */
export async function readTensor(
  learner: NativeLearner,
  which: "weights" | "gradients",
  name: string,
): Promise<Float32Array> {
  const inModel = learner.parameters.findIndex((parameter) => parameter.name === name)
  const inAdapter = learner.adapterParameters.findIndex((parameter) => parameter.name === name)
  const index = Math.max(inModel, inAdapter)
  if (index < 0) throw new GigpoError("BAD_ARGUMENT", `The model has no weight named ${name}.`)
  if (which === "gradients" && inAdapter < 0 && learner.adapterParameters.length > 0)
    throw new GigpoError("BAD_ARGUMENT", `${name} has no gradient: only the adapter is trained.`)
  const buffer = which === "weights" && inAdapter >= 0 ? "adapter" : which
  return await settle(() => learner.read(buffer, index, 0, sizeOf(parametersOf(learner, buffer)[index]!.shape)))
}

async function* chunksOf(
  learner: NativeLearner,
  buffer: StoredBuffer,
  index: number,
  size: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < size; at += chunkElements) {
    const values = await settle(() => learner.read(buffer, index, at, Math.min(chunkElements, size - at)), signal)
    yield new Uint8Array(values.buffer, values.byteOffset, values.byteLength)
  }
}

export function sizeOf(shape: readonly number[]): number {
  return shape.reduce((a, b) => a * b, 1)
}
