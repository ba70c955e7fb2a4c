import { readFileSync } from "node:fs"
import { mkdtemp, readdir, rename, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import type { ValueLoss } from "../../src/engine/engine.ts"
import { refusals } from "../../src/engine/native/check-plan.ts"
import type { NativeCritic } from "../../src/engine/native/native-critic.ts"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { memoryPlan } from "../../src/engine/native/options.ts"
import type { Sequence } from "../../src/engine/sequence.ts"
import { Random } from "../../src/util/random.ts"
import {
  adapterPath,
  credited,
  crossEntropy,
  logProbsOf,
  modelPath,
  randomTokens,
  readTensors,
  relativeError,
  rolloutRows,
} from "./fixtures.ts"

/** What transformers makes of the same; see scripts/fixtures/make_critic.py. */
interface Expected {
  readonly clip: number
  readonly step: { readonly learningRate: number }
  readonly rows: readonly { tokens: number[]; segments: [number, number][]; values: number[]; returns: number[] }[]
  readonly steps: readonly { loss: number; clipFraction: number; gradientNorm: number; values: number[][] }[]
  readonly gradients: Readonly<Record<string, { norm: number; sample: number[] }>>
}

function readCritic(name: string): Expected {
  return JSON.parse(readFileSync(fileURLToPath(new URL(`../fixtures/critics/${name}.json`, import.meta.url)), "utf8"))
}

function rowsOf({ rows }: Expected): Sequence[] {
  return rows.map(({ tokens, segments, values, returns }) => {
    let at = 0
    return {
      tokens: Int32Array.from(tokens),
      segments: segments.map(([start, length]) => {
        const part = (numbers: number[]) => Float32Array.from(numbers.slice(at, at + length))
        const segment = { start, length, values: part(values), returns: part(returns) }
        at += length
        return segment
      }),
    }
  })
}

const loss: ValueLoss = { kind: "clipped-value", clip: 0.3 }
const policies: NativePolicy[] = []
const open = async (...given: Parameters<typeof NativePolicy.open>): Promise<NativePolicy> => {
  policies.push(await NativePolicy.open(...given))
  return policies.at(-1)!
}
let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-critic-"))
})
afterEach(async () => {
  for (const policy of policies.splice(0)) await policy.dispose()
  await rm(folder, { recursive: true })
})

/** A policy's rows with returns, and values that are not the critic's. */
async function valuedRows(policy: NativePolicy): Promise<Sequence[]> {
  const random = new Random(5)
  const numbers = (length: number) => Float32Array.from({ length }, () => 2 * random.uniform() - 1)
  return (await rolloutRows(policy, random)).map((row) => {
    const { length } = row.segments[0]!
    return credited(row, { returns: numbers(length), values: numbers(length) })
  })
}

describe.each(["qwen2-untied", "qwen3"])("the critic of %s", (name) => {
  it("predicts and learns as in transformers, starting with the policy's weights", async () => {
    const expected = readCritic(name)
    const rows = rowsOf(expected)
    const policy = await open(modelPath(name), { microBatchTokens: 32 })
    const critic = await policy.critic()
    for (const [step, wanted] of expected.steps.entries()) {
      const values = await critic.predict(rows)
      expect(values).toHaveLength(wanted.values.flat().length)
      if (step === 0) expect(values.every((value) => value === 0)).toBe(true)
      else expect(relativeError(values, wanted.values.flat()), `step ${step}`).toBeLessThan(2e-4)
      const report = await critic.forwardBackward(rows, { kind: "clipped-value", clip: expected.clip })
      expect(report.tokens).toBe(wanted.values.flat().length)
      expect(report.loss).toBeCloseTo(wanted.loss, 4)
      expect(report.metrics["critic/clip-fraction"]).toBeCloseTo(wanted.clipFraction, 6)
      expect(report.metrics["critic/value"]).toBeCloseTo(mean(wanted.values.flat()), 4)
      if (step + 1 === expected.steps.length) break
      const { gradientNorm, skipped } = await critic.optimizerStep(expected.step)
      expect(skipped).toBe(false)
      expect(Math.abs(gradientNorm / wanted.gradientNorm - 1)).toBeLessThan(3e-4)
    }
    const names = Object.keys(expected.gradients)
    expect(names).toContain("score.weight")
    for (const weight of names) {
      const { norm, sample } = expected.gradients[weight]!
      const gradient = await critic.tensor(weight, "gradients")
      expect(Math.abs(Math.hypot(...gradient) / norm - 1), weight).toBeLessThan(1e-3)
      const every = Math.max(1, Math.floor(gradient.length / 24))
      const found = gradient.filter((_, i) => i % every === 0)
      expect(found.length).toBe(sample.length)
      const off = Math.hypot(...found.map((value, i) => value - sample[i]!)) / Math.hypot(...sample)
      expect(off, weight).toBeLessThan(1e-3)
    }
  })
})

const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / values.length

async function train(critic: NativeCritic, rows: readonly Sequence[]): Promise<number[]> {
  const found: number[] = []
  for (let step = 0; step < 3; step++) {
    found.push((await critic.forwardBackward(rows, loss)).loss)
    found.push((await critic.optimizerStep({ learningRate: 1e-2 })).gradientNorm)
  }
  return [...found, ...(await critic.predict(rows))]
}

const model = ["config.json", "model.safetensors", "optimizer"]
const adapter = ["adapter_config.json", "adapter_model.safetensors", "optimizer"]

describe.each([
  ["a model", model, () => open(modelPath("qwen2-untied"))],
  ["an adapter", adapter, () => open(adapterPath("qwen3"), { base: modelPath("qwen3") })],
] as const)("the critic of %s", (_, files, opened) => {
  it("is created once, and leaves the policy unchanged", async () => {
    const policy = await opened()
    const rows = await valuedRows(policy)
    const before = await logProbsOf(policy, rows)
    const wanted = await policy.forwardBackward(rows, crossEntropy)
    await policy.clearGradients()
    const [critic, same] = await Promise.all([policy.critic(), policy.critic()])
    expect(same).toBe(critic)
    expect(await policy.critic()).toBe(critic)
    await train(critic, rows)
    expect(await logProbsOf(policy, rows)).toEqual(before)
    expect(await policy.forwardBackward(rows, crossEntropy)).toEqual(wanted)
    expect(policy.optimizerSteps).toBe(0)
  })

  it("continues from a checkpoint as without interruption", async () => {
    const policy = await opened()
    const rows = await valuedRows(policy)
    const critic = await policy.critic()
    await train(critic, rows)
    const handle = await critic.store.checkpoint(folder, { files: [join(modelPath("qwen3"), "expected.json")] })
    expect(handle).toEqual({ optimizerSteps: 3 })
    expect((await readdir(folder)).sort()).toEqual([...files, "expected.json"].sort())
    const values = await critic.predict(rows)
    const wanted = await train(critic, rows)
    await critic.store.restore(handle, folder)
    expect(await critic.predict(rows)).toEqual(values)
    expect(await train(critic, rows)).toEqual(wanted)
    const other = await (await opened()).critic()
    await other.store.restore(JSON.parse(JSON.stringify(handle)), folder)
    expect(await other.predict(rows)).toEqual(values)
    expect(await train(other, rows)).toEqual(wanted)
    // A checkpoint of the one is none of the other's.
    const own = join(folder, "policy")
    const policyHandle = await policy.store.checkpoint(own)
    await expect(critic.store.restore(policyHandle, own)).rejects.toMatchObject({
      code: "BAD_MODEL",
      message: expect.stringMatching(/score\.weight|task_type is "CAUSAL_LM"; it must be "SEQ_CLS"/),
    })
    await expect(policy.store.restore(handle, folder)).rejects.toMatchObject({ code: "BAD_MODEL" })
  })

  it("is saved as a sequence classifier with one label, whose head predicts", async () => {
    const policy = await opened()
    const rows = await valuedRows(policy)
    const critic = await policy.critic()
    await train(critic, rows)
    await critic.store.save(folder)
    const config = JSON.parse(readFileSync(join(folder, "config.json"), "utf8"))
    expect(config.architectures).toEqual([expect.stringMatching(/^Qwen[23]ForSequenceClassification$/)])
    expect(config).toMatchObject({ num_labels: 1, id2label: { 0: "LABEL_0" } })
    const tensors = readTensors(join(folder, "model.safetensors"))
    expect(tensors.has("lm_head.weight")).toBe(false)
    const score = tensors.get("score.weight")!
    expect(score.length).toBe(policy.config.hiddenSize)
    expect(score.some((weight) => weight !== 0)).toBe(true)
    // A whole model's critic predicts the same with these weights.
    const fresh = await NativePolicy.create(policy.config, new Random(1))
    policies.push(fresh)
    const whole = await fresh.critic()
    await whole.store.checkpoint(join(folder, "other"))
    await rename(join(folder, "other", "optimizer"), join(folder, "optimizer"))
    await whole.store.restore({ optimizerSteps: 0 }, folder)
    expect(relativeError(await whole.predict(rows), await critic.predict(rows))).toBeLessThan(1e-5)
  })
})

it("is opened with the memory that it needs", async () => {
  const policy = await open(modelPath("qwen3"), { critic: true })
  const { config } = policy
  const numbers = policy.parameters + config.hiddenSize
  expect(policy.memoryPlan.critic).toBe(numbers * 16 + config.maxPositions * config.headSize * 4)
  expect(policy.memoryPlan.text).toContain(", critic ")
  expect(memoryPlan(config, { device: "cpu" }).critic).toBe(0)
  const half = memoryPlan(config, { device: "cuda", critic: true })
  expect(half.critic).toBe(numbers * 18 + config.maxPositions * config.headSize * 4)
  expect(half.total - memoryPlan(config, { device: "cuda" }).total).toBe(half.critic)
  const run = {
    loss: "linear",
    entropyCoefficients: false,
    statistics: [],
    models: [],
    critic: true,
    optimizer: { learningRate: 1e-3 },
    severalSegments: true,
    checkpoints: true,
  } as const
  const without = ["This policy was opened without memory for a critic; open it with critic: true."]
  expect(refusals(run, config, { device: "cuda" })).toEqual(without)
  expect(refusals(run, config, { device: "cuda", critic: true })).toEqual([])
  expect(refusals(run, config, { device: "cpu" })).toEqual([])
  expect(refusals({ ...run, critic: false }, config, { device: "cuda" })).toEqual([])
})

it("rejects rows without returns", async () => {
  const policy = await open(modelPath("qwen3"))
  const rows = await valuedRows(policy)
  const critic = await policy.critic()
  const refused = (call: Promise<unknown>, message: RegExp, code = "BAD_ARGUMENT") =>
    expect(call).rejects.toMatchObject({ code, message: expect.stringMatching(message) })
  const first = rows[1]!
  await refused(critic.forwardBackward([], loss), /There are no sequences to train on/)
  await refused(critic.forwardBackward(rows, { ...loss, clip: 0 }), /clip is 0; it must be above 0/)
  await refused(critic.forwardBackward(rows, { ...loss, clip: NaN }), /clip is NaN/)
  await refused(critic.forwardBackward(rows, { kind: "mse" } as never), /kind "mse"; use "clipped-value"/)
  const bare = { ...first, segments: [{ start: first.segments[0]!.start, length: first.segments[0]!.length }] }
  await refused(
    critic.forwardBackward([bare], loss),
    /sequences\[0\]: returns must be a Float32Array with one number for each of the 2/,
  )
  const returns = first.segments[0]!.returns!
  await refused(
    critic.forwardBackward([credited(bare, { returns })], loss),
    /sequences\[0\]: values must be a Float32Array with one number/,
  )
  const broken = credited(first, { returns: Float32Array.of(NaN, 1) })
  await refused(critic.forwardBackward([broken], loss), /returns contains a number that is not finite/, "NON_FINITE")
  await refused(
    critic.predict([{ tokens: randomTokens(3, new Random(1)), segments: [{ start: 0, length: 1 }] }]),
    /empty/,
  )
  await refused(critic.optimizerStep({ learningRate: -1 }), /learningRate is -1/)
  // Without a clip no old values are asked for, and no temperature matters.
  const free = credited(bare, { returns, temperature: 0.3 })
  expect((await critic.forwardBackward([free], { ...loss, clip: Number.POSITIVE_INFINITY })).tokens).toBe(2)
  const aborted = AbortSignal.abort(new Error("enough"))
  await expect(critic.predict(rows, { signal: aborted })).rejects.toThrow("enough")
  await expect(critic.forwardBackward(rows, loss, { signal: aborted })).rejects.toThrow("enough")
  const sampling = await open(modelPath("qwen3"), { training: false })
  await refused(sampling.critic(), /opened with training: false/)
  await policy.dispose()
  await refused(critic.predict(rows), /is disposed/, "DISPOSED")
})

it("clears its gradients, and rejects to save non-finite numbers", async () => {
  const policy = await open(modelPath("qwen3"))
  const rows = await valuedRows(policy)
  const critic = await policy.critic()
  await critic.forwardBackward(rows, loss)
  expect((await critic.tensor("score.weight", "gradients")).some((value) => value !== 0)).toBe(true)
  await critic.clearGradients()
  expect((await critic.tensor("score.weight", "gradients")).every((value) => value === 0)).toBe(true)
  await critic.forwardBackward(rows, loss)
  await critic.optimizerStep({ learningRate: 3e38 })
  await critic.forwardBackward(rows, loss)
  await critic.optimizerStep({ learningRate: 3e38 })
  await expect(critic.store.checkpoint(folder)).rejects.toMatchObject({ code: "NON_FINITE" })
})
