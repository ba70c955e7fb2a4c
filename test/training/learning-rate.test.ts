import { describe, expect, it } from "vitest"
import type { Environment } from "../../src/environment/environment.ts"
import { sft } from "../../src/sft/sft.ts"
import { evaluate } from "../../src/training/evaluate.ts"
import { learningRateFor, rateRules, resolveLearningRate } from "../../src/training/learning-rate.ts"
import { train } from "../../src/training/train.ts"
import { doorsEnvironment } from "../rollout/doors.ts"
import { all, openDoors, TinyModel } from "./tiny.ts"

const environment = doorsEnvironment() as Environment
const tiny = new TinyModel(environment)

describe("the default learning rate", () => {
  it.each([
    [7e9, 1e-6, 1e-5],
    [1e8, 1e-6, 1e-5],
    [2.5e7, 4e-6, 4e-5],
    [5_191_680, 1.9e-5, 1.9e-4],
    [891_264, 1e-4, 3e-4],
    [20_000, 1e-4, 3e-4],
  ])("of %d weights is %d, in fine-tuning %d, and ten times that for an adapter", (parameters, training, cloning) => {
    expect(learningRateFor(rateRules.training, { parameters })).toBe(training)
    expect(learningRateFor(rateRules.cloning, { parameters })).toBe(cloning)
    expect(learningRateFor(rateRules.training, { parameters, lora: {} })).toBeCloseTo(10 * training, 12)
    expect(learningRateFor(rateRules.cloning, { parameters, lora: {} })).toBeCloseTo(10 * cloning, 12)
  })

  it("is that of a large model if the engine does not report the size, and is replaced by an option", () => {
    const open = { learningRate: undefined }
    expect(resolveLearningRate(open, rateRules.training, {}).learningRate).toBe(1e-6)
    expect(resolveLearningRate({ learningRate: 0.5 }, rateRules.training, { parameters: 1e6 }).learningRate).toBe(0.5)
  })

  it("lets a new model learn from its expert", async () => {
    const model = await tiny.open()
    await sft({ ...model, environment, tasks: 16, epochs: 60, completionsPerUpdate: 4 })
    const { success } = await evaluate({ ...model, environment, rollout: { maxCompletionTokens: 3 } })
    expect(success).toBeGreaterThan(0.95) // at 1e-6 it is 0
  })

  it("is used in training", async () => {
    const model = await tiny.open()
    const optimizer = { warmup: 0 }
    const options = { iterations: 1, groups: 2, groupSize: 4, rollout: { maxCompletionTokens: 4 }, optimizer }
    const [report] = await all(train({ ...model, environment: openDoors(), ...options }))
    expect(report!.metrics["optimizer/learning-rate"]).toBe(1e-4)
  })
})
