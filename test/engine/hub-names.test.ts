import { readdirSync, readFileSync } from "node:fs"
import { mkdtemp, readFile, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { NativePolicy, readPolicyConfig } from "../../src/engine/native/native-policy.ts"
import { Tokenizer } from "../../src/tokenizer/tokenizer.ts"
import { freshHub } from "../hub/cache-folder.ts"
import { commit } from "../hub/hub-server.ts"
import { tokenizerFolder } from "../tokenizer/scratch.ts"
import { adapterPath, modelPath } from "./fixtures.ts"

let server: Awaited<ReturnType<typeof freshHub>>

const filesOf = (folder: string) =>
  Object.fromEntries(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]))

beforeAll(async () => {
  const { "adapter_config.json": config, ...weights } = filesOf(adapterPath("qwen3"))
  const named = { ...JSON.parse(config!.toString()), base_model_name_or_path: "me/qwen3", revision: "main" }
  server = await freshHub({
    "me/qwen3": { files: filesOf(modelPath("qwen3")) },
    "me/sharded": { files: filesOf(modelPath("qwen2-sharded")) },
    "me/adapter": { files: { ...weights, "adapter_config.json": JSON.stringify(named) } },
  })
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  vi.unstubAllEnvs()
})

describe("a name on the Hub in code", () => {
  it.each(["me/qwen3", "me/sharded", `me/sharded@${commit}`])("opens the model %s", async (name) => {
    await using policy = await NativePolicy.open(name)
    expect(policy.config.architecture).toMatch(/^Qwen[23]$/)
    expect(await readPolicyConfig(name)).toEqual(policy.config)
  })

  it("opens an adapter and its base model, and saves it with the name of the base", async () => {
    await using policy = await NativePolicy.open("me/adapter")
    expect(policy.lora?.rank).toBeGreaterThan(0)
    await using plain = await NativePolicy.open("me/qwen3")
    expect(policy.config).toEqual(plain.config)
    const folder = join(await mkdtemp(join(tmpdir(), "gigpo-hub-")), "adapter")
    await policy.saveAdapter(folder)
    const saved = JSON.parse(await readFile(join(folder, "adapter_config.json"), "utf8"))
    expect(saved).toMatchObject({ base_model_name_or_path: "me/qwen3" })
    expect(await policy.frozenWeights({ reference: false })).toMatchObject({ name: `me/qwen3@${commit}` })
  })

  it("is accepted as the base of an adapter", async () => {
    await using policy = await NativePolicy.open(adapterPath("qwen3"), { base: "me/qwen3" })
    expect(policy.lora).toBeDefined()
  })

  it("opens a tokenizer", async () => {
    server.repositories["me/tokenizer"] = { files: filesOf(await tokenizerFolder()) }
    await using tokenizer = await Tokenizer.open("me/tokenizer")
    expect(tokenizer.directory).toMatch(new RegExp(`models--me--tokenizer.snapshots.${commit}$`))
    expect(tokenizer.files.length).toBeGreaterThan(1)
  })

  it("of a damaged snapshot is rejected like any other folder", async () => {
    const config = join(server.home, "hub", "models--me--sharded", "snapshots", commit, "config.json")
    await writeFile(config, readFileSync(config).fill(0))
    await expect(NativePolicy.open("me/sharded")).rejects.toMatchObject({ code: "BAD_MODEL" })
  })
})
