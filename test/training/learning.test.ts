import { expect, it } from "vitest"
import type { Environment } from "../../src/environment/environment.ts"
import { sft } from "../../src/sft/sft.ts"
import { evaluate } from "../../src/training/evaluate.ts"
import { train } from "../../src/training/train.ts"
import { doorsEnvironment } from "../rollout/doors.ts"
import { all, TinyModel } from "./tiny.ts"

// The whole of it: a model from nothing learns from an expert, and where it has not learned enough, from its own episodes.

const environment = doorsEnvironment() as Environment
const tiny = new TinyModel(environment)
const rollout = { maxCompletionTokens: 3 }
const cloning = { tasks: 16, completionsPerUpdate: 16, optimizer: { learningRate: 3e-3 } }

it("a model imitates its expert after enough SFT", async () => {
  const model = await tiny.open()
  const reports = await all(sft({ ...model, environment, ...cloning, epochs: 30 }))
  expect(reports.at(-1)!.loss).toBeLessThan(reports[0]!.loss / 50)
  const { success, meanReturn, meanSteps } = await evaluate({ ...model, environment, rollout })
  expect({ success, meanReturn, meanSteps }).toEqual({ success: 1, meanReturn: 3, meanSteps: 3 })
})

it.each(["gigpo", "grpo"] as const)(
  "a model with little SFT learns the rest by reinforcement learning: %s",
  async (name) => {
    const model = await tiny.open()
    await all(sft({ ...model, environment, ...cloning, epochs: 4 }))
    const ask = () => evaluate({ ...model, environment, rollout, tasks: 64, temperature: 1 })
    expect((await ask()).success).toBeLessThan(0.25)
    const options = {
      iterations: 50,
      groups: 8,
      groupSize: 8,
      stepsPerUpdate: 64,
      rollout,
      estimator: { name },
      optimizer: { learningRate: 2e-3 },
    }
    await all(train({ ...model, environment, ...options }))
    expect((await ask()).success).toBeGreaterThan(0.8)
  },
)
