import { cp, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { NativePolicy, readPolicyShape } from "../../src/engine/native/native-policy.ts"
import { RemoteEngine } from "../../src/engine/remote/remote-engine.ts"
import { pythonPattern } from "../../src/model-files/python-pattern.ts"
import { adapterPath, modelPath } from "../engine/fixtures.ts"

let folder: string
let warnings: string[]
const config = () => join(folder, "adapter_config.json")
const weights = () => join(folder, "adapter_model.safetensors")
beforeEach(async () => {
  warnings = []
  vi.spyOn(process, "emitWarning").mockImplementation((warning) => void warnings.push(String(warning)))
  folder = await mkdtemp(join(tmpdir(), "gigpo-adapter-files-"))
  await cp(adapterPath("qwen3"), folder, { recursive: true })
})
afterEach(async () => {
  vi.restoreAllMocks()
  await rm(folder, { recursive: true })
})

const open = () => NativePolicy.open(folder, { base: modelPath("qwen3") })
const refused = (message: RegExp, code = "BAD_MODEL") =>
  expect(open()).rejects.toMatchObject({ code, message: expect.stringMatching(message) })

/** Writes the header of the weights anew, each name as it is given. */
async function renameTensors(change: (name: string) => string): Promise<void> {
  const bytes = await readFile(weights())
  const size = Number(bytes.readBigUInt64LE(0))
  const header = JSON.parse(bytes.toString("utf8", 8, 8 + size)) as Record<string, unknown>
  const named = Object.entries(header).map(([name, value]) => [name === "__metadata__" ? name : change(name), value])
  let text = JSON.stringify(Object.fromEntries(named))
  while (text.length % 8 !== 0) text += " "
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(text.length))
  await writeFile(weights(), Buffer.concat([length, Buffer.from(text), bytes.subarray(8 + size)]))
}

describe("an adapter's folder", () => {
  it.each<[string, (name: string) => string, RegExp]>([
    [
      "default",
      (name) => name.replace(/lora_([AB])/, "lora_$1.default"),
      /with the adapter's name "default" in them: save it with/,
    ],
    ["policy", (name) => name.replace(/lora_([AB])/, "lora_$1.policy"), /with the adapter's name "policy" in them/],
  ])("with the name %s in its tensors is rejected with the reason", async (_, change, message) => {
    await renameTensors(change)
    await refused(message)
  })

  it("without PEFT's prefix is rejected with the reason", async () => {
    await renameTensors((name) => name.replace("base_model.model.", ""))
    await refused(/names without PEFT's prefix "base_model.model."/)
  })

  it.each<[string, RegExp]>([
    [
      "base_model.model.model.embed_tokens.weight",
      /embed_tokens.weight", which would replace weights of the base model: name its module/,
    ],
    [
      "base_model.model.model.layers.0.self_attn.q_proj.lora_magnitude_vector.weight",
      /holds magnitude vectors \(DoRA\)/,
    ],
    ["base_model.model.model.layers.0.self_attn.q_proj.lora_B.bias", /a bias of a LoRA matrix \(lora_bias\)/],
    ["base_model.model.model.layers.0.self_attn.q_proj.base_layer.bias", /a trained bias/],
    ["base_model.model.model.layers.9.self_attn.q_proj.lora_A.weight", /which adapter_config.json does not describe/],
  ])("that holds %s is rejected by name", async (tensor, message) => {
    await renameTensors((name) => (name.endsWith("layers.0.self_attn.k_proj.lora_A.weight") ? tensor : name))
    const json = JSON.parse(await readFile(config(), "utf8"))
    await writeFile(config(), JSON.stringify({ ...json, exclude_modules: ["layers.0.self_attn.k_proj"] }))
    // The other half of that pair goes unnoticed behind the first stranger.
    await renameTensors((name) => (name.endsWith("layers.0.self_attn.k_proj.lora_B.weight") ? `z.${name}` : name))
    await refused(message)
  })

  it("with adapter_model.bin alone is rejected with the way to convert it", async () => {
    await rename(weights(), join(folder, "adapter_model.bin"))
    await refused(/has adapter_model.bin but no adapter_model.safetensors. Pickle files.*safe_serialization=True/)
    await rm(join(folder, "adapter_model.bin"))
    await refused(/has adapter_config.json but no adapter_model.safetensors/)
  })

  it("may hold the config.json of its model", async () => {
    await cp(join(modelPath("qwen3"), "config.json"), join(folder, "config.json"))
    await using policy = await open()
    expect(policy.lora).toEqual({ rank: 5, alpha: 8 })
  })

  it("that holds a model too is rejected", async () => {
    for (const file of ["config.json", "model.safetensors"])
      await cp(join(modelPath("qwen3"), file), join(folder, file))
    await refused(/holds a model \(model.safetensors\) and an adapter/)
  })

  it("is of no use to an engine elsewhere", async () => {
    const opened = RemoteEngine.open(folder, { url: "http://127.0.0.1:1", key: "tml-key" } as never)
    await expect(opened).rejects.toMatchObject({
      message: expect.stringMatching(/is an adapter, but a server of the Tinker API/),
    })
  })

  it("has dropout, and names that nothing has, named in warnings", async () => {
    const json = JSON.parse(await readFile(config(), "utf8"))
    await writeFile(
      config(),
      JSON.stringify({ ...json, lora_dropout: 0.05, target_modules: [...json.target_modules, "c_attn"] }),
    )
    await using policy = await open()
    expect(policy.lora).toMatchObject({ rank: 5 })
    expect(warnings.join("\n")).toMatch(/the model has no module named "c_attn"/)
    expect(warnings.join("\n")).toMatch(/lora_dropout is 0.05; gigpo trains without dropout/)
  })

  it("reports its trained parameters before weights are read", async () => {
    const json = JSON.parse(await readFile(config(), "utf8"))
    await writeFile(config(), JSON.stringify({ ...json, base_model_name_or_path: modelPath("qwen3"), r: 7 }))
    expect((await readPolicyShape(folder)).lora).toEqual({ rank: 7, alpha: 8 })
  })
})

describe("a regular expression of Python", () => {
  it.each<[string, string, boolean]>([
    ["(?P<a>q)_proj", "q_proj", true],
    ["(?P<a>.)(?P=a)_proj", "qq_proj", true],
    ["\\Aq_proj\\Z", "q_proj", true],
    ["(?i)Q_PROJ", "q_proj", true],
    ["model\\.layers\\.(1[0-9]|[0-9])\\.mlp", "model.layers.17.mlp", true],
    ["q_pro(?!j)", "q_proj", false],
    ["(?<=q)_proj", "q_proj", true],
    ["[qv]_proj$", "v_proj", true],
    ["\\w+?_proj", "gate_proj", true],
  ])("%s on %s", (source, name, found) => {
    expect(pythonPattern(source)?.test(name)).toBe(found)
  })

  it.each(["(?>q)_proj", "q++", "(?(1)a|b)", "(?#note)q", "(?x: q )", "(", "a{2}+", "(?s-i:q)"])(
    "%s is not read",
    (source) => {
      expect(pythonPattern(source)).toBeUndefined()
    },
  )
})
