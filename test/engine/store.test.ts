import { mkdtemp, readdir, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { Random } from "../../src/util/random.ts"
import { adapterPath, crossEntropy, modelPath, rolloutRows } from "./fixtures.ts"

let folder: string
const policies: NativePolicy[] = []
const open = async (...given: Parameters<typeof NativePolicy.open>): Promise<NativePolicy> => {
  policies.push(await NativePolicy.open(...given))
  return policies.at(-1)!
}
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-store-"))
})
afterEach(async () => {
  for (const policy of policies.splice(0)) await policy.dispose()
  await rm(folder, { recursive: true })
})

async function train(policy: NativePolicy): Promise<number[]> {
  const rows = await rolloutRows(policy, new Random(3))
  const losses: number[] = []
  for (let step = 0; step < 3; step++) {
    losses.push((await policy.forwardBackward(rows, crossEntropy)).loss)
    losses.push((await policy.optimizerStep({ learningRate: 1e-2 })).gradientNorm)
  }
  return losses
}

const model = ["config.json", "model.safetensors", "optimizer"]
const adapter = ["adapter_config.json", "adapter_model.safetensors", "optimizer"]

describe.each([
  ["a model", model, () => open(modelPath("qwen3"))],
  ["an adapter", adapter, () => open(adapterPath("qwen3"), { base: modelPath("qwen3") })],
] as const)("the store of %s", (_, files, opened) => {
  it("continues from a checkpoint as without interruption", async () => {
    const policy = await opened()
    await train(policy)
    const handle = await policy.store.checkpoint(folder, { files: [join(modelPath("qwen3"), "expected.json")] })
    expect(handle).toEqual({ optimizerSteps: 3 })
    expect((await readdir(folder)).sort()).toEqual([...files, "expected.json"].sort())
    expect(await readdir(join(folder, "optimizer"))).toEqual(["model.safetensors"])
    const wanted = await train(policy)
    await policy.store.restore(handle, folder)
    expect(policy.optimizerSteps).toBe(3)
    expect(await train(policy)).toEqual(wanted)
    const other = await opened()
    await other.store.restore(JSON.parse(JSON.stringify(handle)), folder)
    expect(await train(other)).toEqual(wanted)
  })

  it("rejects an empty handle", async () => {
    const policy = await opened()
    for (const handle of [null, {}, { optimizerSteps: -1 }, { optimizerSteps: "3" }, [3]]) {
      await expect(policy.store.restore(handle, folder)).rejects.toMatchObject({
        code: "BAD_ARGUMENT",
        message: expect.stringContaining("has no valid optimizerSteps"),
      })
    }
  })
})

it("a checkpoint with non-finite numbers is rejected, with the fix", async () => {
  const policy = await open(modelPath("qwen3"))
  await train(policy)
  await policy.optimizerStep({ learningRate: 0 })
  const rows = await rolloutRows(policy, new Random(3))
  await policy.forwardBackward(rows, crossEntropy)
  await policy.optimizerStep({ learningRate: 3e38 })
  await expect(policy.store.checkpoint(folder)).rejects.toMatchObject({
    code: "NON_FINITE",
    message: expect.stringMatching(
      /contains numbers that are not finite; older checkpoints are unchanged.*lower learning rate\.$/,
    ),
  })
})

it("saves a model, with an adapter merged into it", async () => {
  const policy = await open(adapterPath("qwen3"), { base: modelPath("qwen3") })
  await policy.store.save(folder)
  const merged = await open(folder)
  const tokens = Int32Array.of(1, 2, 3)
  const [found, wanted] = [await merged.logits(tokens), await policy.logits(tokens)]
  for (const [i, value] of found.entries()) expect(value).toBeCloseTo(wanted[i]!, 4)
})
