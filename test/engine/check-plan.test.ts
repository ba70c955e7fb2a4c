import { describe, expect, it } from "vitest"
import type { EngineRequirements } from "../../src/engine/engine.ts"
import { refusals } from "../../src/engine/native/check-plan.ts"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { modelPath, surrogate } from "./fixtures.ts"

const plan: EngineRequirements = {
  loss: surrogate(),
  entropyCoefficients: true,
  statistics: ["entropy"],
  models: ["reference"],
  optimizer: { learningRate: 1e-3 },
  severalSegments: true,
  checkpoints: true,
}

describe("the plan of a run", () => {
  it("fits the policy, or the error names the options to set", async () => {
    const policy = await NativePolicy.open(modelPath("qwen3"))
    expect(policy.deterministic).toBe(true)
    expect(policy.losses).toEqual(["cross-entropy", "clipped-surrogate"])
    expect(await policy.check(plan)).toEqual([])
    expect(await policy.check({ ...plan, loss: "linear" })).toEqual([])
    const wrong = {
      ...plan,
      loss: { kind: "ppo" },
      statistics: ["entropy", "hellinger", "top", "variance"],
      models: ["reference", "teacher"],
      optimizer: { learningRate: -1 },
    } as unknown as EngineRequirements
    expect(await policy.check(wrong)).toEqual([
      'The native engine does not support the loss "ppo": use "linear", for which the trainer evaluates the loss.',
      'The native engine does not support the statistic "variance"; it supports "entropy", "hellinger", "top". Choose another loss or estimator.',
      'The native engine has no model "teacher"; besides the policy there is only "reference".',
      "learningRate is -1; it must be a number of at least 0.",
    ])
    await policy.dispose()
  })

  it("cannot be trained by a policy that only samples", async () => {
    const policy = await NativePolicy.open(modelPath("qwen3"), { training: false })
    expect(await policy.check(plan)).toEqual([
      "This policy was opened with training: false; open it without that option to train it.",
    ])
    await policy.dispose()
  })

  it("needs memory for its reference policy", async () => {
    const policy = await NativePolicy.open(modelPath("qwen3"))
    const without = ["This policy was opened without memory for a reference policy; open it with reference: true."]
    // A GPU's memory has gone to the cache by then.
    expect(refusals(plan, policy.config, { device: "cuda" })).toEqual(without)
    expect(refusals(plan, policy.config, { device: "cuda", reference: true })).toEqual([])
    const huge = {
      ...policy.config,
      hiddenSize: 65536,
      intermediateSize: 262144,
      layers: 200,
      heads: 512,
      headSize: 128,
    }
    expect(refusals(plan, huge, { device: "cpu" })).toEqual(without)
    expect(refusals({ ...plan, models: [] }, huge, { device: "cpu" })).toEqual([])
    // Distances are from it, too.
    const compares = { ...plan, models: [], statistics: ["hellinger"] } as const
    expect(refusals(compares, huge, { device: "cpu" })).toEqual(without)
    expect(refusals(compares, policy.config, { device: "cuda" })).toEqual(without)
    expect(refusals(compares, policy.config, { device: "cuda", reference: true })).toEqual([])
    await policy.dispose()
  })
})
