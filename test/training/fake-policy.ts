import { copyFile, writeFile } from "node:fs/promises"
import { basename, join } from "node:path"
import { openSafetensors } from "../../src/model-files/safetensors.ts"
import { writeSafetensors } from "../../src/model-files/safetensors-writer.ts"
import type { SavedPolicy } from "../../src/training/checkpoint.ts"

/** A policy that is one tensor of weights and one of moments, saved and loaded as the real one does. */
export class FakePolicy implements SavedPolicy {
  weights: Float32Array = Float32Array.of(1, 2, 3)
  moments: Float32Array = Float32Array.of(0, 0, 0)
  steps: number = 0

  async save(directory: string, options: { files?: readonly string[] } = {}): Promise<void> {
    await writeFile(join(directory, "config.json"), "{}")
    await writeSafetensors(join(directory, "model.safetensors"), [tensor("weight", this.weights)])
    for (const file of options.files ?? []) await copyFile(file, join(directory, basename(file)))
  }

  async saveOptimizer(path: string): Promise<void> {
    await writeSafetensors(path, [tensor("firstMoment.weight", this.moments)])
  }

  async load(directory: string): Promise<void> {
    this.weights = await read(directory, "weight")
  }

  async loadOptimizer(directory: string, steps: number): Promise<void> {
    this.moments = await read(directory, "firstMoment.weight")
    this.steps = steps
  }
}

function tensor(name: string, values: Float32Array) {
  const chunks = [new Uint8Array(values.buffer, values.byteOffset, values.byteLength)]
  return { name, dtype: "F32" as const, shape: [values.length], chunks }
}

async function read(directory: string, name: string): Promise<Float32Array> {
  const files = await openSafetensors(directory)
  try {
    for await (const chunk of files.read(name)) return new Float32Array(chunk.slice().buffer)
    return new Float32Array()
  } finally {
    await files.close()
  }
}
