import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { writeTensors } from "../../src/engine/native/tensor-transfer.ts"
import { openSafetensors } from "../../src/model-files/safetensors.ts"
import { writeSafetensors } from "../../src/model-files/safetensors-writer.ts"
import type { NativeLearner } from "../../src/native/native.ts"

// Sizes of one chunk, of several, and of a few bytes between them.
const sizes = [3, 5_000_001, 1, 2, 9_000_000, 4]
const numberAt = (tensor: number, at: number) => (tensor * 7919 + at) % 65521
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-transfer-"))
  const sources = sizes.map((size, tensor) => ({
    name: String(tensor),
    dtype: "F32" as const,
    shape: [size],
    chunks: (async function* () {
      yield new Uint8Array(Float32Array.from({ length: size }, (_, at) => numberAt(tensor, at)).buffer)
    })(),
  }))
  await writeSafetensors(join(folder, "model.safetensors"), sources, {})
})
afterAll(async () => await rm(folder, { recursive: true }))

/** Takes the bytes of each call only at its end, as late as it may. */
function slowLearner(take: (index: number, at: number, values: Float32Array) => void) {
  let running = 0
  const write: NativeLearner["write"] = (_buffer, index, at, bytes) => ({
    promise: (async () => {
      expect(++running).toBe(1)
      await setTimeout(20)
      take(index, at, new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4))
      running--
    })(),
    cancel: () => {},
  })
  return { write } as NativeLearner
}

const tensors = sizes.map((_, index) => ({ index, name: String(index) }))

describe("writing tensors", () => {
  it("reads ahead without changing the tensor in use", async () => {
    const files = await openSafetensors(folder)
    const taken = sizes.map(() => 0)
    let wrong = 0
    const learner = slowLearner((index, at, values) => {
      expect(at).toBe(taken[index])
      for (let i = 0; i < values.length; i++) if (values[i] !== numberAt(index, at + i)) wrong++
      taken[index]! += values.length
    })
    const order: string[] = []
    let bytes = 0
    await writeTensors(learner, "weights", files, tensors, {
      begin: (name) => order.push(name),
      pass: (chunk) => {
        bytes += chunk.length
      },
    })
    await files.close()
    expect(taken).toEqual(sizes)
    expect(wrong).toBe(0)
    expect(order).toEqual(tensors.map(({ name }) => name))
    expect(bytes).toBe(4 * sizes.reduce((a, b) => a + b))
  })

  it("passes on a failure of the learner, and writes nothing after it", async () => {
    const files = await openSafetensors(folder)
    let calls = 0
    const learner = slowLearner(() => {
      if (++calls === 2) throw new Error("full")
    })
    await expect(writeTensors(learner, "weights", files, tensors)).rejects.toThrow("full")
    await files.close()
    expect(calls).toBe(2)
  })

  it("waits for the tensor in use before it passes on a failure of the file", async () => {
    const files = await openSafetensors(folder)
    let settled = 0
    const learner = slowLearner(() => settled++)
    const missing = [tensors[0]!, { index: 1, name: "missing" }]
    await expect(writeTensors(learner, "weights", files, missing)).rejects.toMatchObject({ code: "BAD_MODEL" })
    expect(settled).toBe(1)
    await files.close()
  })
})
