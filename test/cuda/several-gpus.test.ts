import { afterEach, describe, expect, it } from "vitest"
import type { DeviceName } from "../../src/engine/native/devices.ts"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import type { Environment } from "../../src/environment/environment.ts"
import { deviceReport } from "../../src/native/device.ts"
import { Random } from "../../src/util/random.ts"
import { crossEntropy, modelPath, rolloutRows, surrogate } from "../engine/fixtures.ts"
import { doorsEnvironment } from "../rollout/doors.ts"
import { checkLostRun } from "../training/lost-run.ts"
import { TinyModel } from "../training/tiny.ts"

// A policy on several GPUs of one kind: those of this machine, or emulated ones.

const emulated = { count: "GIGPO_EMULATED_GPUS", lost: "GIGPO_EMULATED_LOST" }
process.env[emulated.count] = "4"
const { devices } = deviceReport()
const counts = [1, 2, 4].filter((count) => count <= devices.length)
const onSeveral = describe.skipIf(counts.length < 2)
const step = { learningRate: 1e-3 }

function named(count: number): DeviceName {
  return `cuda:${devices
    .slice(0, count)
    .map(({ index }) => index)
    .join(",")}`
}

const tiny = new TinyModel(doorsEnvironment() as Environment)

async function open(device: DeviceName): Promise<NativePolicy> {
  const options = { precision: "float32", kvCacheBytes: 2 ** 20, microBatchTokens: 256, reference: true } as const
  return await NativePolicy.open(modelPath("qwen3"), { device, ...options })
}

onSeveral("a policy on several GPUs", () => {
  afterEach(() => {
    delete process.env[emulated.lost]
  })

  const train = async (device: DeviceName) => {
    await using policy = await open(device)
    const rows = await rolloutRows(policy, new Random(3))
    const numbers: number[] = []
    for (let i = 0; i < 10; i++) {
      const { loss, tokens } = await policy.forwardBackward(rows, surrogate({ klWeight: 0.1 }))
      await policy.optimizerStep(step)
      numbers.push(loss, tokens)
    }
    const prompt = rows[5]!.tokens
    const completions = await Promise.all(
      [1, 2, 3, 4].map((key) =>
        policy.sample({ prompt: prompt.subarray(0, 20 + key), maxTokens: 6, stopTokens: [], key: [key, key] }),
      ),
    )
    return { gpus: policy.gpus, numbers, tokens: completions.map(({ tokens }) => [...tokens]) }
  }

  it("has the losses of one after ten steps, and samples its tokens", async () => {
    const one = await train(named(1))
    for (const count of counts.slice(1)) {
      const several = await train(named(count))
      expect(several.gpus.length).toBe(count)
      for (const [i, number] of several.numbers.entries()) expect(Math.abs(number - one.numbers[i]!)).toBeLessThan(1e-6)
      expect(several.tokens).toEqual(one.tokens)
      if (count === 2) expect(await train(named(count))).toEqual(several)
    }
  })

  it("uses every GPU as all", async () => {
    await using policy = await open("all")
    expect(policy.gpus).toEqual(devices.map(({ index }) => index))
  })

  it("is rejected where a GPU is missing", async () => {
    await expect(open("cuda:0,77")).rejects.toMatchObject({
      code: "DEVICE_UNAVAILABLE",
      message: expect.stringContaining("There is no usable GPU 77: use one of cuda:0, "),
    })
  })

  it("fails with the name of the GPU that is lost, where GPUs are emulated", async ({ skip }) => {
    if (devices[0]!.name !== "emulated") skip()
    await using policy = await open(named(2))
    const rows = await rolloutRows(policy, new Random(3))
    await policy.forwardBackward(rows, crossEntropy)
    process.env[emulated.lost] = "1"
    const error = { code: "DEVICE_LOST", message: expect.stringMatching(/^cuda:1: cudaErrorIllegalAddress/) }
    await expect(policy.optimizerStep(step)).rejects.toMatchObject(error)
    await expect(policy.forwardBackward(rows, crossEntropy)).rejects.toMatchObject(error)
  })

  it("loses a GPU in a run, which ends with its checkpoint intact, where GPUs are emulated", async ({ skip }) => {
    if (devices[0]!.name !== "emulated") skip()
    const small = { kvCacheBytes: 2 ** 20, microBatchTokens: 256, reference: true }
    const on = (device: DeviceName) => tiny.open(tiny.directory, { ...small, device })
    const lose = () => {
      process.env[emulated.lost] = "1"
    }
    await checkLostRun(tiny, await on(named(2)), lose, "cuda:1", () => on(named(1)))
  })
})
