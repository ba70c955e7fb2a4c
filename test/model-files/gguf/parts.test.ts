import { execFileSync } from "node:child_process"
import { mkdtemp, rename, rm, truncate } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { NativePolicy } from "../../../src/engine/native/native-policy.ts"
import { openGguf } from "../../../src/model-files/gguf/open.ts"
import { type GgufSource, type TypedValue, writeGguf } from "../../../src/model-files/gguf/write.ts"
import { modelMetadata, modelTensors } from "./model.ts"

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-gguf-parts-"))
})
afterEach(async () => {
  await rm(folder, { recursive: true })
})

const u32 = (value: number): TypedValue => ({ type: "uint32", value })
const embedding = Float32Array.from({ length: 8 * 64 }, (_, i) => Math.sin(i))
const tensors = () => modelTensors(64, 8, { type: "F32", bytes: new Uint8Array(embedding.buffer) })
const part = (number: number, of = 3) => join(folder, `m-0000${number}-of-0000${of}.gguf`)

/** Writes a model in three parts, as llama-gguf-split does: the metadata of the model is in the first. */
async function writeParts(change: (metadata: Map<string, TypedValue>, number: number) => void = () => {}) {
  const all = tensors()
  const shares: GgufSource[][] = [all.slice(0, 4), all.slice(4, 5), all.slice(5)]
  for (const [number, share] of shares.entries()) {
    const metadata = number === 0 ? modelMetadata(64) : new Map<string, TypedValue>()
    metadata.set("split.no", u32(number)).set("split.count", u32(3)).set("split.tensors.count", u32(all.length))
    change(metadata, number)
    await writeGguf(part(number + 1), metadata, share)
  }
}

const logitsOf = async (path: string) => {
  await using policy = await NativePolicy.open(path, { training: false, device: "cpu", precision: "float32" })
  return await policy.logits(Int32Array.of(1, 5, 2))
}

describe("a model in several GGUF files", () => {
  it("is the model in one file, opened by its first part", async () => {
    const whole = join(folder, "whole.gguf")
    await writeGguf(whole, modelMetadata(64), tensors())
    await writeParts()
    expect(await logitsOf(part(1))).toEqual(await logitsOf(whole))
  })

  it.each<[string, () => Promise<unknown>, string]>([
    ["a part is missing", () => rm(part(3)), "m-00003-of-00003.gguf is missing"],
    ["a part is cut off", () => truncate(part(2), 300), "m-00002-of-00003.gguf is not a usable GGUF file"],
    ["parts are exchanged", () => exchange(part(2), part(3)), "its name says part 2"],
    [
      "a part of another model is there",
      () => rename(part(2), part(3)).then(() => writeGguf(part(2), no(1), [])),
      "part 3",
    ],
    ["tensors are missing", () => writeGguf(part(2), no(1), []), "its parts have 10 tensors instead of 11"],
    ["a tensor is there twice", () => writeGguf(part(2), no(1), tensors().slice(0, 1)), "another part has its tensor"],
  ])("is rejected where %s", async (_, damage, message) => {
    await writeParts()
    await damage()
    await expect(openGguf(part(1))).rejects.toMatchObject({
      code: "BAD_MODEL",
      message: expect.stringContaining(message),
    })
  })

  it.skipIf(process.platform === "win32").each([1, 2])(
    "does not wait for a pipe in place of part %i",
    async (number) => {
      await writeParts()
      await rm(part(number))
      execFileSync("mkfifo", [part(number)])
      await expect(openGguf(part(1))).rejects.toMatchObject({ code: "UNSAFE_PATH" })
    },
  )

  it("is rejected by another part, and by another name", async () => {
    await writeParts()
    await expect(openGguf(part(2))).rejects.toThrow("give the first, m-00001-of-00003.gguf")
    await rename(part(1), join(folder, "m.gguf"))
    await expect(openGguf(join(folder, "m.gguf"))).rejects.toThrow("does not end with -00001-of-00003.gguf")
  })
})

it("parses a header once while the file stays as it is", async () => {
  const path = join(folder, "model.gguf")
  const parsed = async () => {
    const { metadata, close } = await openGguf(path)
    await close()
    return metadata
  }
  await writeGguf(path, modelMetadata(64), tensors())
  const first = await parsed()
  expect(await parsed()).toBe(first)
  await writeGguf(path, modelMetadata(64).set("llama.context_length", u32(32)), tensors())
  expect((await parsed()).get("llama.context_length")).toBe(32)
})

const no = (number: number) =>
  new Map([
    ["split.no", u32(number)],
    ["split.count", u32(3)],
  ] as const)

async function exchange(one: string, other: string): Promise<void> {
  await rename(one, `${one}.old`)
  await rename(other, one)
  await rename(`${one}.old`, other)
}
