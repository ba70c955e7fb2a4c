import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, expect, it } from "vitest"
import { diskBytes } from "../../src/engine/native/disk.ts"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { type LoraOptions, resolvePolicyOptions } from "../../src/engine/native/options.ts"
import { openSafetensors } from "../../src/model-files/safetensors.ts"
import { modelPath } from "./fixtures.ts"

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-disk-"))
})
afterEach(() => rm(folder, { recursive: true }))

/** Of all tensors in a file. */
async function tensorBytes(directory: string, file = "model.safetensors"): Promise<number> {
  const files = await openSafetensors(directory, file)
  try {
    return files.names.reduce((sum, name) => sum + files.info(name).bytes, 0)
  } finally {
    await files.close()
  }
}

it.each<[string, LoraOptions | undefined]>([
  ["qwen2", undefined],
  ["qwen2-untied", undefined],
  ["qwen3", { rank: 3 }],
  ["qwen2-untied", { rank: 2 }],
  ["qwen2-untied", { rank: 2, targetModules: ["q_proj", "v_proj"], modulesToSave: ["embed_tokens", "lm_head"] }],
  ["qwen3", { rank: 2, rankPattern: { "layers.1.mlp.*": 3 }, modulesToSave: ["lm_head", "model.norm"] }],
  ["qwen3", { rank: 2, layersToTransform: [1], modulesToSave: ["embed_tokens"], ensureWeightTying: true }],
])("is what %s with the adapter %j writes, and what its critic does", async (name, lora) => {
  await using policy = await NativePolicy.open(modelPath(name), { device: "cpu", critic: true, ...(lora && { lora }) })
  const { store } = await policy.critic()
  for (const [head, one] of [
    ["language", policy.store],
    ["value", store],
  ] as const) {
    const [model, checkpoint] = [join(folder, `${head}-model`), join(folder, `${head}-checkpoint`)]
    await one.save(model)
    await one.checkpoint(checkpoint)
    const weights = await tensorBytes(checkpoint, lora && "adapter_model.safetensors")
    expect(
      diskBytes(policy.config, head, resolvePolicyOptions({ ...(lora && { lora }) }, policy.config).adapter),
    ).toEqual({
      model: await tensorBytes(model),
      checkpoint: weights + (await tensorBytes(join(checkpoint, "optimizer"))),
    })
  }
})
