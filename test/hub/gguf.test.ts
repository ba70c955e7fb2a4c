import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, describe, expect, it, vi } from "vitest"
import { exportGguf } from "../../src/export/gguf.ts"
import { resolveModel } from "../../src/hub/resolve-model.ts"
import { type TypedValue, writeGguf } from "../../src/model-files/gguf/write.ts"
import { built, gigpo } from "../cli/gigpo.ts"
import { modelFolder } from "../export/model-folder.ts"
import { modelMetadata, modelTensors } from "../model-files/gguf/model.ts"
import { freshHub, quick } from "./cache-folder.ts"

afterEach(() => {
  vi.unstubAllEnvs()
})

const embedding = { type: "F32", bytes: new Uint8Array(8 * 64 * 4) }

/** Bytes of a GGUF file of the Llama family without a tokenizer. */
async function bytesOf(
  folder: string,
  changes: Readonly<Record<string, TypedValue>>,
  tensors = modelTensors(64, 8, embedding),
): Promise<Buffer> {
  const path = join(folder, "written.gguf")
  await writeGguf(path, new Map([...modelMetadata(64), ...Object.entries(changes)]), tensors)
  return await readFile(path)
}

describe.runIf(built)("gigpo models", () => {
  it("reads the header of each GGUF file, and reports which of them run", async () => {
    const folder = await mkdtemp(join(tmpdir(), "gigpo-hub-gguf-"))
    await modelFolder("llama", join(folder, "model"))
    await exportGguf(join(folder, "model"), join(folder, "q8_0.gguf"), "q8_0")
    const part = (number: number): Readonly<Record<string, TypedValue>> => ({
      "split.no": { type: "uint32", value: number },
      "split.count": { type: "uint32", value: 2 },
      "split.tensors.count": { type: "uint32", value: 12 },
    })
    const tensors = modelTensors(64, 8, embedding)
    await using server = await freshHub({
      "a/good": { files: { "a-Q8_0.gguf": await readFile(join(folder, "q8_0.gguf")), "mmproj-a.gguf": "no model" } },
      "a/bad": {
        files: { "b.gguf": await bytesOf(folder, { "general.architecture": { type: "string", value: "mamba" } }) },
      },
      "a/plain": { files: { "c.gguf": await bytesOf(folder, {}) } },
      "a/split": {
        files: {
          "d-00001-of-00002.gguf": await bytesOf(folder, part(0), tensors.slice(0, 5)),
          "d-00002-of-00002.gguf": await bytesOf(folder, part(1), tensors.slice(5)),
        },
      },
    })
    for (const name of Object.keys(server.repositories)) await resolveModel(name, {}, quick)
    const env = { HF_HOME: server.home, HF_ENDPOINT: server.url }
    const { code, stdout } = await gigpo(["models", "--json"], { cwd: folder, env })
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject([
      { repository: "a/bad", runs: false, about: expect.stringMatching(/^GGUF b\.gguf is not .*mamba/) },
      { repository: "a/good", runs: true, about: "GGUF a-Q8_0.gguf (Llama)" },
      { repository: "a/plain", runs: false, about: expect.stringMatching(/^GGUF c\.gguf has no list of tokens/) },
      { repository: "a/split", runs: false, about: expect.stringMatching(/its parts have 11 tensors instead of 12/) },
    ])
    await rm(folder, { recursive: true })
  })
})
