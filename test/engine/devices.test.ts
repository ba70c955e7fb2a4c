import { describe, expect, it } from "vitest"
import { checkDevice, deviceProblem, gpusOf, kindOf } from "../../src/engine/native/devices.ts"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { memoryPlan } from "../../src/engine/native/options.ts"
import type { ModelConfig } from "../../src/model-files/model-config.ts"
import type { NativeDeviceReport } from "../../src/native/native.ts"
import { Random } from "../../src/util/random.ts"

const cpu = { instructionSet: "avx2", threads: 2, memoryBytes: 3e9 }
const gpu = (index: number, name = "NVIDIA H100", computeCapability = "9.0") => ({
  ...{ index, name, computeCapability, memoryBytes: 80 * 2 ** 30 },
})
const report = (...devices: ReturnType<typeof gpu>[]): (() => NativeDeviceReport) => {
  const unavailable = { code: "no_device", message: "The NVIDIA driver shows no GPU." } as const
  return () => ({ devices, cpu, ...(devices.length === 0 && { unavailable }) })
}

describe("the option device", () => {
  it.each(["auto", "cpu", "cuda", "all", "cuda:0", "cuda:3,1"])("can be %s", (device) => {
    expect(deviceProblem(device)).toBeUndefined()
  })

  it.each([
    "cpu,cuda:0",
    "gpu",
    "cuda:",
    "cuda:0,",
    "cuda:0, 1",
    "cuda:-1",
    "cuda:x",
    "cpu:0",
    "all,cuda:0",
    "",
    0,
    ["cuda:0"],
  ])("cannot be %j", (device) => {
    expect(deviceProblem(device)).toMatch(/^must be "auto", "cpu", .* "cuda:0,1"$/)
  })

  it("names each GPU once", () => {
    expect(deviceProblem("cuda:0,0")).toBe("must name each GPU once")
  })

  it("selects GPUs by CUDA's numbers, whichever are usable", () => {
    const two = report(gpu(1), gpu(4))
    expect(gpusOf("all", two)).toEqual([1, 4])
    expect(gpusOf("cuda:4,1", two)).toEqual([4, 1])
    for (const device of ["auto", "cuda", "cpu"] as const) expect(gpusOf(device, two)).toEqual([])
    expect(kindOf("auto", two)).toBe("cuda")
    expect(kindOf("auto", report())).toBe("cpu")
    expect(kindOf("all", report())).toBe("cuda")
  })

  const check = (gpus: number[], of: () => NativeDeviceReport) => () => checkDevice({ device: "cuda", gpus }, of)

  it("needs GPUs that are there, of one kind", () => {
    const two = report(gpu(0), gpu(1))
    check([], two)()
    check([1, 0], two)()
    expect(check([0, 7], two)).toThrow(
      "There is no usable GPU 7: use one of cuda:0, cuda:1, and check CUDA_VISIBLE_DEVICES.",
    )
    expect(check([], report())).toThrow('The NVIDIA driver shows no GPU. Use device "cpu".')
    const mixed = report(gpu(0), gpu(1, "NVIDIA A100", "8.0"), gpu(2))
    expect(check([0, 1, 2], mixed)).toThrow(
      /cuda:0 is a NVIDIA H100 and cuda:1 a NVIDIA A100: .* Use device "cuda:0,2"\.$/,
    )
  })

  it("is rejected before a model is opened", async () => {
    const bad = { device: "cuda:0,0" as const }
    await expect(NativePolicy.open("/nowhere", bad)).rejects.toMatchObject({ code: "BAD_ARGUMENT" })
    await expect(NativePolicy.create({} as never, new Random(1), bad)).rejects.toMatchObject({ code: "BAD_ARGUMENT" })
  })

  it("plans memory for GPUs that are not there", () => {
    const config: ModelConfig = {
      ...{
        architecture: "Qwen3" as const,
        vocabularySize: 64,
        hiddenSize: 32,
        intermediateSize: 64,
        layers: 2,
        heads: 2,
      },
      ...{ keyValueHeads: 1, headSize: 16, rmsNormEpsilon: 1e-6, ropeTheta: 1e4, tieEmbeddings: true },
      ...{ queryKeyValueBias: false, queryKeyNorm: true, maxPositions: 32 },
    }
    const plan = memoryPlan(config, { device: "cuda:0,1" }, 2 ** 33)
    expect(plan.total).toBe(memoryPlan(config, { device: "cuda" }, 2 ** 33).total)
  })
})
