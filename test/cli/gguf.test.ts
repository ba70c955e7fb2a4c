import { mkdtemp, readdir, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { openGguf } from "../../src/model-files/gguf/open.ts"
import { modelFolder } from "../export/model-folder.ts"
import { built, gigpo } from "./gigpo.ts"

let cwd: string
beforeEach(async () => {
  cwd = await mkdtemp(join(tmpdir(), "gigpo-cli-gguf-"))
  await modelFolder("llama", join(cwd, "model"))
})
afterEach(async () => {
  await rm(cwd, { recursive: true })
})
const exported = (...words: string[]) => gigpo(["export", ...words, "--as", "gguf"], { cwd })

describe.runIf(built)("gigpo export --as gguf", () => {
  it("writes a model and a Modelfile, and replaces them only with --overwrite", async () => {
    expect(await exported("model", "-o", "a.gguf", "--dtype", "q8_0")).toMatchObject({ code: 0 })
    expect(await readFile(join(cwd, "a.Modelfile"), "utf8")).toBe('FROM ./a.gguf\nPARAMETER stop "<e>"\n')
    const { metadata, close } = await openGguf(join(cwd, "a.gguf"))
    await close()
    expect(metadata.get("general.file_type")).toBe(7)
    expect(await exported("model", "-o", "a.gguf")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--overwrite"),
    })
    expect(await exported("model", "-o", "a.gguf", "--overwrite")).toMatchObject({ code: 0 })
    expect((await readdir(cwd)).sort()).toEqual(["a.Modelfile", "a.gguf", "model"])
  })

  it.each([
    [["model", "-o", "a.bin"], ".gguf"],
    [["model", "-o", "none/a.gguf"], "no folder"],
    [["nowhere", "-o", "a.gguf"], "no folder"],
    [["model", "-o", "a.gguf", "--dtype", "q9_9"], "q9_9"],
  ])("rejects %j", async (words, message) => {
    const { code, stderr } = await exported(...words)
    expect(code).not.toBe(0)
    expect(stderr).toContain(message)
    expect(await readdir(cwd)).toEqual(["model"])
  })

  it("rejects --dtype with another format", async () => {
    const { code, stderr } = await gigpo(["export", "model", "--as", "csv", "-o", "a.csv", "--dtype", "f16"], { cwd })
    expect(code).not.toBe(0)
    expect(stderr).toContain("--dtype applies only to --as gguf")
  })
})

describe.runIf(built)("an adapter next to a GGUF file", () => {
  it("is trained, saved, opened again by its folder alone, and exported with the same product", async () => {
    const file = join(cwd, "model.gguf")
    expect(await exported("model", "-o", "model.gguf", "--dtype", "f32")).toMatchObject({ code: 0 })
    const row = Int32Array.from([1, 2, 3, 4])
    const folder = join(cwd, "adapter")
    const lora = { rank: 2, alpha: 3 }
    let wanted: Float32Array
    {
      await using policy = await NativePolicy.open(file, { device: "cpu", precision: "float32", lora })
      await policy
        .forwardBackward([{ prompt: row, segments: [{ tokens: row, advantage: 1 }] } as never], {
          kind: "sft",
        } as never)
        .catch(() => {})
      await policy.saveAdapter(folder, {})
      wanted = await policy.logits(row)
    }
    {
      await using policy = await NativePolicy.open(folder, { device: "cpu", precision: "float32", training: false })
      expect(await policy.logits(row)).toEqual(wanted)
    }
    expect(await exported("adapter", "-o", "adapter.gguf")).toMatchObject({ code: 0 })
    const { metadata, tensors, close } = await openGguf(join(cwd, "adapter.gguf"))
    await close()
    expect(metadata.get("adapter.lora.alpha")).toBe(3)
    expect(tensors.get("blk.0.attn_q.weight.lora_a")).toMatchObject({ shape: [2, 32] })
    expect(tensors.get("blk.1.ffn_down.weight.lora_b")).toMatchObject({ shape: [32, 2] })
    expect(await exported("adapter", "-o", "b.gguf", "--dtype", "f16")).toMatchObject({
      stderr: expect.stringContaining("omit --dtype"),
    })
  })
})
