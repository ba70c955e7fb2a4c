import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { exportGguf } from "../../src/export/gguf.ts"
import { modelfile } from "../../src/export/modelfile.ts"
import { type Recipe, recipes, tensorType } from "../../src/export/recipes.ts"
import { openGguf } from "../../src/model-files/gguf/open.ts"
import { readModelConfig } from "../../src/model-files/model-config.ts"
import { preTokenizers } from "../../src/tokenizer/gguf/pre-tokenizers.ts"
import { Tokenizer } from "../../src/tokenizer/tokenizer.ts"
import { modelFolder } from "./model-folder.ts"

let root: string
let folder: string
let file: string
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "gigpo-export-"))
  folder = join(root, "model")
  file = join(root, "model.gguf")
  process.env.GIGPO_STATE = join(root, "state")
})
afterEach(async () => {
  delete process.env.GIGPO_STATE
  await rm(root, { recursive: true })
})

const row = Int32Array.from([3, 9, 40, 2, 11, 30, 7, 7])
async function logitsOf(model: string): Promise<Float32Array> {
  await using policy = await NativePolicy.open(model, { training: false, device: "cpu", precision: "float32" })
  return await policy.logits(row)
}
/** Root mean square of the differences, as a share of that of the numbers. */
const relativeError = (found: Float32Array, wanted: Float32Array) =>
  Math.sqrt(
    found.reduce((sum, value, i) => sum + (value - wanted[i]!) ** 2, 0) /
      wanted.reduce((sum, value) => sum + value ** 2, 0),
  )

describe.each(["qwen2", "qwen2-untied", "qwen3", "llama", "qwen3-bf16", "yarn", "smollm3", "gemma3"])(
  "%s as GGUF",
  (fixture) => {
    beforeEach(async () => {
      await modelFolder(fixture, folder)
    })

    it("in F32 is the same model to the bit, with the same configuration, tokenizer and template", async () => {
      let stops: readonly string[] = []
      await exportGguf(folder, file, "f32", (found) => {
        stops = found
      })
      expect(stops).toEqual(["<e>"])
      expect(await readModelConfig(file)).toEqual(await readModelConfig(folder))
      expect(await logitsOf(file)).toEqual(await logitsOf(folder))
      await using own = await Tokenizer.open(folder)
      await using found = await Tokenizer.open(file)
      const text = "in the <s> 42 then<e> ąthe"
      expect([...found.encode(text)]).toEqual([...own.encode(text)])
      expect(found.eosTokens).toEqual(own.eosTokens)
      expect(found.chatTemplate).toBe(own.chatTemplate)
      const messages = [{ role: "user", content: "the end" }]
      expect((await found.encodeChat(messages)).tokens).toEqual((await own.encodeChat(messages)).tokens)
    })

    it.each<[Recipe, number]>([
      ["f16", 2e-3],
      ["bf16", 2e-2],
      ["q8_0", 4e-2],
      ["q4_0", 0.8],
      ["q4_k_m", 0.8],
    ])("in %s loses little", async (recipe, most) => {
      await exportGguf(folder, file, recipe)
      expect(relativeError(await logitsOf(file), await logitsOf(folder))).toBeLessThan(most)
    })

    it("trained from the file is saved as a folder, and that exported is the file again", async () => {
      await exportGguf(folder, file, "f32")
      const saved = join(root, "saved")
      {
        await using policy = await NativePolicy.open(file, { device: "cpu", precision: "float32" })
        await using tokenizer = await Tokenizer.open(file)
        await policy.save(saved, { files: tokenizer.files })
      }
      expect(await logitsOf(saved)).toEqual(await logitsOf(folder))
      const again = join(root, "again", "..", "model2.gguf")
      await exportGguf(saved, again, "f32")
      const [one, other] = [await openGguf(file), await openGguf(again)]
      await one.close()
      await other.close()
      expect(other.tensors).toEqual(one.tensors)
      expect(new Map(other.metadata).set("general.name", "model")).toEqual(one.metadata)
    })
  },
)

it("keeps a factor of YaRN's cosines and sines that is not the usual one", async () => {
  await modelFolder("yarn", folder)
  const path = join(folder, "config.json")
  const json = JSON.parse(await readFile(path, "utf8"))
  json.rope_scaling.attention_factor = 1.5
  await writeFile(path, JSON.stringify(json))
  await exportGguf(folder, file, "f32")
  const { ropeScaling } = await readModelConfig(file)
  expect(ropeScaling).toMatchObject({ type: "yarn", factor: 4, attentionFactor: expect.closeTo(1.5, 6) })
  expect(relativeError(await logitsOf(file), await logitsOf(folder))).toBeLessThan(1e-6)
})

describe("a model that llama.cpp would compute otherwise", () => {
  it.each([
    ["yarn-mscale", "YaRN with its own beta_fast, beta_slow or truncate"],
    ["mistral", "Mistral models with sliding windows"],
    ["qwen2-windows", "Qwen2 models with sliding windows"],
    ["smollm3-windows", "SmolLM3 models with sliding windows"],
    ["gemma3-yarn", "Gemma3 models with rope scaling"],
  ])("is rejected: %s", async (fixture, why) => {
    await modelFolder(fixture, folder)
    await expect(exportGguf(folder, file, "f32")).rejects.toMatchObject({
      code: "BAD_MODEL",
      message: expect.stringContaining(why),
    })
    expect(await readdir(root)).toEqual(["model"])
  })
})

describe("the tokenizer", () => {
  it.each([...preTokenizers.keys()])("with the pre-tokenizer %s splits as before", async (pre) => {
    await modelFolder("qwen3", folder, pre)
    await exportGguf(folder, file, "f16")
    await using own = await Tokenizer.open(folder)
    await using found = await Tokenizer.open(file)
    for (const text of ["the 1234 the", "a  b\n\n the's", "x<s>y", " the12 3 "])
      expect([...found.encode(text)]).toEqual([...own.encode(text)])
  })

  it("without a name in llama.cpp is rejected, and nothing is written", async () => {
    await modelFolder("qwen3", folder)
    const path = join(folder, "tokenizer.json")
    const json = JSON.parse(await readFile(path, "utf8"))
    json.pre_tokenizer.pretokenizers[0].pattern.Regex = "\\p{L}+"
    await rm(path)
    await writeFile(path, JSON.stringify(json))
    await expect(exportGguf(folder, file, "f16")).rejects.toMatchObject({ code: "BAD_TOKENIZER" })
    expect(await readdir(root)).toEqual(["model"])
  })
})

describe("recipes", () => {
  const model = { layers: 16, tied: true }
  it.each<[Recipe, string, number[], string]>([
    ["q4_k_m", "blk.3.attn_q.weight", [512, 512], "Q4_K"],
    ["q4_k_m", "blk.0.attn_v.weight", [512, 512], "Q6_K"],
    ["q4_k_m", "blk.3.ffn_down.weight", [512, 512], "Q4_K"],
    ["q4_k_m", "blk.4.ffn_down.weight", [512, 512], "Q6_K"],
    ["q4_k_m", "blk.3.attn_q.weight", [512, 576], "Q5_0"],
    ["q4_k_m", "token_embd.weight", [512, 512], "Q6_K"],
    ["q4_0", "token_embd.weight", [512, 576], "Q8_0"],
    ["q8_0", "blk.3.attn_q.weight", [512, 40], "F16"],
    ["q8_0", "blk.3.attn_norm.weight", [512], "F32"],
    ["bf16", "output.weight", [512, 512], "BF16"],
  ])("%s stores %s %j as %s", (recipe, name, shape, type) => {
    expect(tensorType(recipe, name, shape, model)).toBe(type)
  })

  it("have the file types of llama.cpp", () => {
    expect(Object.fromEntries(Object.entries(recipes).map(([name, { fileType }]) => [name, fileType]))).toEqual({
      f32: 0,
      f16: 1,
      bf16: 32,
      q8_0: 7,
      q4_0: 2,
      q4_k_m: 15,
    })
  })
})

it("a Modelfile contains the name of the file and the end tokens", () => {
  expect(modelfile("/models/a.gguf", ["<|im_end|>", '"'])).toBe(
    'FROM ./a.gguf\nPARAMETER stop "<|im_end|>"\nPARAMETER stop "\\""\n',
  )
})
