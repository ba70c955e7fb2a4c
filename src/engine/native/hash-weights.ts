import { createHash } from "node:crypto"
import type { NativeLearner } from "../../native/native.ts"
import { type StoredBuffer, tensorSources } from "./tensor-transfer.ts"

/** Returns the SHA-256 (hex) of the tensors in a buffer: names, shapes and values, in the order of the computation. */
export async function hashBuffer(learner: NativeLearner, buffer: StoredBuffer, signal?: AbortSignal): Promise<string> {
  const hash = createHash("sha256")
  for (const { name, shape, chunks } of tensorSources(learner, buffer)) {
    hash.update(JSON.stringify([name, shape]))
    for await (const chunk of chunks) {
      signal?.throwIfAborted()
      hash.update(chunk)
    }
  }
  return hash.digest("hex")
}
