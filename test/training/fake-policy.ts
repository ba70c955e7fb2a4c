import { copyFile, readFile, writeFile } from "node:fs/promises"
import { basename, join } from "node:path"
import type { ModelStore } from "../../src/engine/engine.ts"
import type { Json, StateDict, Stateful } from "../../src/util/state.ts"

/** A policy that is some weights and moments, saved and loaded as an engine does. */
export class FakePolicy {
  weights: Float32Array = Float32Array.of(1, 2, 3)
  moments: Float32Array = Float32Array.of(0, 0, 0)
  steps: number = 0

  readonly store: ModelStore = {
    save: async (directory, { files = [] } = {}) => {
      await writeFile(join(directory, "config.json"), "{}")
      await writeFloats(join(directory, "weights.bin"), this.weights)
      for (const file of files) await copyFile(file, join(directory, basename(file)))
    },
    checkpoint: async (directory, options) => {
      await this.store.save(directory, options)
      await writeFloats(join(directory, "moments.bin"), this.moments)
      return { steps: this.steps }
    },
    restore: async (handle: Json, directory) => {
      this.weights = await readFloats(join(directory, "weights.bin"))
      this.moments = await readFloats(join(directory, "moments.bin"))
      this.steps = (handle as { steps: number }).steps
    },
  }
}

/** Something with a memory: a number in JSON, and an array of each type. */
export class Memory implements Stateful {
  readonly name: string
  count: number = 0
  arrays: NonNullable<StateDict["arrays"]> = {}

  constructor(name: string) {
    this.name = name
  }

  state(): StateDict {
    return { json: { count: this.count }, arrays: this.arrays }
  }

  restore({ json, arrays = {} }: StateDict): void {
    this.count = (json as { count: number }).count
    this.arrays = arrays
  }
}

async function writeFloats(path: string, values: Float32Array): Promise<void> {
  await writeFile(path, new Uint8Array(values.buffer, values.byteOffset, values.byteLength))
}

async function readFloats(path: string): Promise<Float32Array> {
  return new Float32Array((await readFile(path)).slice().buffer)
}
