import { getEventListeners } from "node:events"
import { setTimeout as sleep } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import type { AdamWParameters } from "../../src/engine/engine.ts"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import type { Environment } from "../../src/environment/environment.ts"
import type { SftOptions } from "../../src/sft/options.ts"
import { sft } from "../../src/sft/sft.ts"
import { type Changes, doorsEnvironment } from "../rollout/doors.ts"
import { all, TinyModel } from "../training/tiny.ts"

const doors = (changes?: Changes) => doorsEnvironment(changes) as Environment
const tiny = new TinyModel(doors())
const small: SftOptions = { tasks: 8, epochs: 3, completionsPerUpdate: 8, optimizer: { learningRate: 3e-3 } }

async function run(options: SftOptions = {}, environment = doors()) {
  const model = await tiny.open()
  const reports = await all(sft({ ...model, environment, ...small, ...options }))
  return { ...model, reports: reports.map(({ seconds: _, ...report }) => report) }
}

describe("SFT", () => {
  it("passes over every step of the expert in each epoch, with falling loss", async () => {
    const { reports, policy } = await run()
    expect(reports).toMatchObject([1, 2, 3].map((epoch) => ({ epoch, epochs: 3, completions: 24 })))
    expect(policy.optimizerSteps).toBe(9)
    // Before it has learned anything a token costs about the logarithm of the vocabulary.
    expect(reports[0]!.loss).toBeGreaterThan(2)
    expect(reports[1]!.loss).toBeLessThan(reports[0]!.loss)
    expect(reports[2]!.loss).toBeLessThan(reports[1]!.loss)
  })

  it("learns the end of completions, too", async () => {
    const { policy, tokenizer } = await run({ epochs: 30 })
    const { tokens: prompt } = await tokenizer.encodeChat([{ role: "user", content: "red 0" }])
    const stopTokens = tokenizer.eosTokens
    const { tokens } = await policy.sample({ prompt, maxTokens: 5, temperature: 0, stopTokens, key: [0, 0] })
    expect(tokenizer.decode(tokens)).toBe("a<|im_end|>")
  })

  it("is determined by the seed", async () => {
    const one = await run({ seed: 5 })
    const same = await run({ seed: 5 })
    expect(same.reports).toEqual(one.reports)
    expect(await tiny.weights(same.policy)).toBe(await tiny.weights(one.policy))
    expect((await run({ seed: 6 })).reports).not.toEqual(one.reports)
  })

  it("follows its learning-rate schedule, with or without progress reports", async () => {
    const model = await tiny.open()
    const rates: number[] = []
    const policy: typeof model.policy = new Proxy(model.policy, {
      get: (target, key) => {
        const value = Reflect.get(target, key, target)
        if (key !== "optimizerStep") return typeof value === "function" ? value.bind(target) : value
        return (step: AdamWParameters) => target.optimizerStep(step).finally(() => rates.push(step.learningRate))
      },
    })
    const optimizer = { learningRate: 1, warmup: 1, schedule: "linear" as const }
    await sft({ ...model, policy, environment: doors(), ...small, optimizer })
    const expected = [1 / 3, 2 / 3, 1, 1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6]
    expect(rates.map((rate) => rate.toFixed(6))).toEqual(expected.map((rate) => rate.toFixed(6)))
  })

  it("reports its progress", async () => {
    const told: number[] = []
    const model = await tiny.open()
    const onProgress = ({ done, total }: { done: number; total: number }) => told.push(done / total)
    await all(sft({ ...model, environment: doors(), ...small, onProgress }))
    expect(told).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9].map((step) => step / 9))
  })
})

describe("a failed episode of the expert", () => {
  const failingAt = (numbers: readonly number[], task = (index: number) => numbers.includes(index)) => {
    const { start } = doors()
    return doors({
      start: (door, context) =>
        task((door as { index: number }).index) ? Promise.reject(new Error("no server")) : start(door, context),
    })
  }
  const clonedWith = async (environment: Environment) => {
    const warnings: string[] = []
    const model = await tiny.open()
    const onWarning = (message: string) => warnings.push(message)
    const reports = await all(sft({ ...model, environment, ...small, onWarning }))
    return { rows: reports[0]!.completions, warnings }
  }

  it("is skipped and reported", async () => {
    expect(await clonedWith(failingAt([2, 5, 6, 7]))).toEqual({
      rows: 12,
      warnings: [
        "4 of 8 episodes of the expert failed, the first of them on task 2: doors: no server. They are left out.",
      ],
    })
    const { expert } = doors()
    const lost = doors({
      expert: (door) =>
        (door as { index: number }).index === 1
          ? {
              complete() {
                throw new Error("lost")
              },
            }
          : expert!(door),
    })
    const { rows, warnings } = await clonedWith(lost)
    expect([rows, warnings.length]).toEqual([21, 1])
  })

  it("ends the SFT if more than half of them fail", async () => {
    await expect(clonedWith(failingAt([0, 2, 4, 6, 7]))).rejects.toMatchObject({
      code: "ENVIRONMENT_FAILED",
      message: expect.stringMatching(/^5 of 8 episodes of the expert failed/),
    })
  })
})

describe("aborted SFT", () => {
  it("stops during an endless synchronous expert", async () => {
    const controller = new AbortController()
    const { tokenizer, policy } = await tiny.open()
    setTimeout(() => controller.abort(new Error("enough")), 20)
    const endless = { policy, tokenizer, environment: doors(), ...small, tasks: 1e9, signal: controller.signal }
    await expect(all(sft(endless))).rejects.toThrow("enough")
  })

  const reason = new Error("Ctrl-C")

  it("stops within an epoch and leaves the policy usable", async () => {
    const model = await tiny.open()
    const controller = new AbortController()
    const { signal } = controller
    const onProgress = ({ done }: { done: number }) => done === 4 && controller.abort(reason)
    const cloning = sft({ ...model, environment: doors(), ...small, signal, onProgress })[Symbol.asyncIterator]()
    expect((await cloning.next()).value).toMatchObject({ epoch: 1 })
    await expect(cloning.next()).rejects.toBe(reason)
    expect(model.policy.optimizerSteps).toBe(4)
    expect(getEventListeners(signal, "abort")).toEqual([])
    expect(await all(sft({ ...model, environment: doors(), ...small }))).toHaveLength(3)
  })

  it("does not wait for a hanging environment of the expert", async () => {
    const model = await tiny.open()
    const controller = new AbortController()
    const environment = doors({ step: () => new Promise(() => {}) })
    const first = sft({ ...model, environment, ...small, signal: controller.signal }).then()
    await sleep(20)
    controller.abort(reason)
    await expect(first).rejects.toBe(reason)
    expect(getEventListeners(controller.signal, "abort")).toEqual([])
  })
})

describe("SFT is rejected", () => {
  it.each<[string, SftOptions, RegExp]>([
    ["no tasks", { tasks: 0 }, /sft: tasks must be at least 1, not 0/],
    ["no epochs", { epochs: 0 }, /epochs must be at least 1, not 0/],
    ["no batch", { completionsPerUpdate: 0 }, /completionsPerUpdate must be at least 1, not 0/],
    [
      "a negative learning rate",
      { optimizer: { learningRate: -1 } },
      /optimizer.learningRate must be at least 0, not -1/,
    ],
  ])("for %s", async (_, options, message) => {
    await expect(run(options)).rejects.toMatchObject({ code: "BAD_ARGUMENT", message: expect.stringMatching(message) })
  })

  it("if there is no expert, it gives nothing, or its environment fails", async () => {
    const { expert: _, ...without } = doors()
    await expect(run({}, without)).rejects.toMatchObject({
      code: "BAD_ENVIRONMENT",
      message: expect.stringMatching(/has no expert/),
    })
    const silent = doors({ expert: () => ({ complete: () => undefined }) })
    await expect(run({}, silent)).rejects.toMatchObject({
      code: "BAD_ENVIRONMENT",
      message: "The expert of doors returned no completion in 8 tasks.",
    })
    const failing = doors({ start: () => Promise.reject(new Error("no server")) })
    await expect(run({}, failing)).rejects.toMatchObject({
      code: "ENVIRONMENT_FAILED",
      message: expect.stringMatching(/^8 of 8 episodes of the expert failed, the first .* task 0: doors: no server\./),
    })
  })

  it("if a step does not fit the model, before anything is trained", async () => {
    const { tokenizer } = await tiny.open()
    await using policy = await NativePolicy.open(tiny.directory, { threads: 2, maxPositions: 8 })
    await expect(sft({ policy, tokenizer, environment: doors(), ...small })).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: expect.stringMatching(
        /A step of the expert has \d+ tokens, but the model has 8 positions: raise maxPositions/,
      ),
    })
    expect(policy.optimizerSteps).toBe(0)
  })
})
