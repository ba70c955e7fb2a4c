import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { openSafetensors } from "../../src/model-files/safetensors.ts"
import {
  type TensorSource,
  writeSafetensors,
  writeShardedSafetensors,
} from "../../src/model-files/safetensors-writer.ts"
import { Random } from "../../src/util/random.ts"
import { badArgument, bytesOf, source, sourceBytes } from "./safetensors-files.ts"

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-safetensors-"))
})
afterEach(async () => {
  await rm(folder, { recursive: true })
})

describe("writeSafetensors", () => {
  it("writes files that openSafetensors reads, from chunks of any size", async () => {
    const whole = source("a", [5, 7])
    const bytes = Uint8Array.from(sourceBytes(whole))
    async function* pieces() {
      for (let at = 0; at < bytes.length; at += 11) yield bytes.subarray(at, at + 11)
    }
    const small = source("b", [3], "BF16", new Random(2))
    await writeSafetensors(join(folder, "model.safetensors"), [small, { ...whole, chunks: pieces() }])
    const files = await openSafetensors(folder)
    expect(files.info("a")).toEqual({ dtype: "F32", shape: [5, 7], bytes: 140 })
    expect(files.info("b")).toEqual({ dtype: "BF16", shape: [3], bytes: 6 })
    expect(await bytesOf(files, "a")).toEqual(sourceBytes(whole))
    expect(await bytesOf(files, "b")).toEqual(sourceBytes(small))
    await files.close()
  })

  it("aligns the data to 8 bytes and every tensor to its elements, and keeps the metadata", async () => {
    const path = join(folder, "model.safetensors")
    for (const name of ["a", "ab", "abc", "abcd", "é", '"']) {
      await writeSafetensors(path, [source(name, [3], "BF16"), source("w", [2])], { note: name })
      const bytes = await readFile(path)
      const length = Number(bytes.readBigUInt64LE(0))
      expect(length % 8).toBe(0)
      const header = JSON.parse(bytes.toString("utf8", 8, 8 + length))
      expect(header.__metadata__).toEqual({ note: name })
      expect(header.w.data_offsets).toEqual([0, 8])
      expect(header[name].data_offsets).toEqual([8, 14])
      expect(bytes.length).toBe(8 + length + 14)
      await rm(path)
    }
  })

  it("sets the format pt by default, which loaders of PyTorch models require", async () => {
    const path = join(folder, "model.safetensors")
    await writeSafetensors(path, [])
    expect((await readFile(path)).toString("utf8", 8)).toContain('{"__metadata__":{"format":"pt"}}')
  })

  it.each<[string, TensorSource[], RegExp]>([
    ["a name twice", [source("a", [1]), source("a", [2])], /"a" is given twice/],
    ["the reserved name", [source("__metadata__", [1])], /does not allow/],
    ["half a surrogate pair", [source("\ud800", [1])], /does not allow/],
    ["a negative shape", [{ ...source("a", [1]), shape: [-1] }], /not a list of integers/],
    ["a dtype it cannot write", [{ ...source("a", [1]), dtype: "F64" as "F32" }], /has dtype F64/],
    ["too few bytes", [{ ...source("a", [1]), shape: [2] }], /needs 8 bytes; its chunks have only 4/],
    ["too many bytes", [{ ...source("a", [2]), shape: [1] }], /needs 4 bytes; its chunks have more/],
  ])("rejects %s and leaves no file behind", async (_, tensors, message) => {
    await expect(writeSafetensors(join(folder, "x"), tensors)).rejects.toEqual(badArgument(message))
    expect(await readdir(folder)).toEqual([])
  })

  it("does not follow a source that never ends", async () => {
    const endless = (function* () {
      for (;;) yield new Uint8Array(3)
    })()
    const tensor = { ...source("a", [4]), chunks: endless }
    await expect(writeSafetensors(join(folder, "x"), [tensor])).rejects.toEqual(badArgument(/chunks have more/))
  })

  it("never replaces a file and removes its own when the source fails", async () => {
    const path = join(folder, "x")
    await writeFile(path, "mine")
    await expect(writeSafetensors(path, [])).rejects.toMatchObject({ code: "IO" })
    expect(await readFile(path, "utf8")).toBe("mine")
    const failing = (function* () {
      yield new Uint8Array(4)
      throw new Error("device lost")
    })()
    const broken = { ...source("a", [2]), chunks: failing }
    await expect(writeSafetensors(join(folder, "y"), [broken])).rejects.toThrow("device lost")
    expect(await readdir(folder)).toEqual(["x"])
  })
})

describe("writeShardedSafetensors", () => {
  const tensors = () =>
    ["a", "b", "c", "__proto__"].map((name, i) => source(name, [10 * (i + 1)], "F32", new Random(i)))

  it("writes one file when the model fits", async () => {
    expect(await writeShardedSafetensors(folder, tensors())).toEqual(["model.safetensors"])
    expect(await readdir(folder)).toEqual(["model.safetensors"])
  })

  it("splits above the limit and writes an index that openSafetensors accepts", async () => {
    const names = await writeShardedSafetensors(folder, tensors(), { maxFileBytes: 130 })
    expect(names).toEqual([
      "model-00001-of-00003.safetensors", // a and b: 120 bytes
      "model-00002-of-00003.safetensors", // c: 120 bytes
      "model-00003-of-00003.safetensors", // 160 bytes: above the limit, but a tensor is never split
      "model.safetensors.index.json",
    ])
    expect((await readdir(folder)).sort()).toEqual(names)
    const index = JSON.parse(await readFile(join(folder, "model.safetensors.index.json"), "utf8"))
    expect(index.metadata.total_size).toBe(400)
    const files = await openSafetensors(folder)
    expect(files.names).toEqual(["a", "b", "c", "__proto__"])
    for (const tensor of tensors()) expect(await bytesOf(files, tensor.name)).toEqual(sourceBytes(tensor))
    await files.close()
  })

  it("gives every tensor its own file when all are above the limit", async () => {
    expect(await writeShardedSafetensors(folder, tensors(), { maxFileBytes: 1 })).toHaveLength(5)
    const files = await openSafetensors(folder)
    expect(files.names).toEqual(["a", "b", "c", "__proto__"])
    await files.close()
  })

  it("rejects a name given twice even when the two would be in different files", async () => {
    const twice = [source("a", [10]), source("a", [10])]
    await expect(writeShardedSafetensors(folder, twice, { maxFileBytes: 40 })).rejects.toEqual(
      badArgument(/given twice/),
    )
    expect(await readdir(folder)).toEqual([])
  })
})
