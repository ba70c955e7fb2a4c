import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, afterEach, describe, expect, it } from "vitest"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { type Sequence, stepSequence } from "../../src/engine/sequence.ts"
import { readModelConfig } from "../../src/model-files/model-config.ts"
import { Random } from "../../src/util/random.ts"
import { modelPath, readTensors } from "./fixtures.ts"

// What reads or writes all weights takes many calls, and must meet one state of them, whatever else is asked for at the time.

const folder = await mkdtemp(join(tmpdir(), "gigpo-one-state-"))
afterAll(() => rm(folder, { recursive: true, force: true }))
let folders = 0
const fresh = () => join(folder, String(folders++))

const config = { ...(await readModelConfig(modelPath("qwen3"))), layers: 8 }
const open: NativePolicy[] = []
async function create(seed: number, options = {}): Promise<NativePolicy> {
  const policy = await NativePolicy.create(config, new Random(seed), { maxPositions: 256, ...options })
  open.push(policy)
  return policy
}
afterEach(async () => {
  for (const policy of open.splice(0)) await policy.dispose()
})

const row: Sequence = stepSequence(
  new Int32Array(9).fill(5),
  new Int32Array(9).map((_, i) => i),
)
const request = { prompt: Int32Array.of(1, 2, 3), maxTokens: 3, stopTokens: [] }
const step = { learningRate: 0.1, weightDecay: 0 }

/** AdamW steps requested during `work`, one per turn of the event loop. */
async function amidSteps(policy: NativePolicy, work: () => Promise<unknown>): Promise<void> {
  const done = work()
  const steps: Promise<unknown>[] = []
  for (let i = 0; i < 20; i++) {
    steps.push(policy.forwardBackward([row], { kind: "cross-entropy" }), policy.optimizerStep(step))
    await new Promise((resolve) => setImmediate(resolve))
  }
  await Promise.all([done, ...steps])
}

/** Names of tensors that differ. */
function differing(a: string, b: string): string[] {
  const [one, other] = [tensorsOf(a), tensorsOf(b)]
  expect([...one.keys()]).toEqual([...other.keys()])
  return [...one.keys()].filter((name) => one.get(name)!.some((value, i) => value !== other.get(name)![i]))
}
const tensorsOf = (directory: string) => readTensors(join(directory, "model.safetensors"))

describe("a model saved during updates", () => {
  it("has a single version: no tensor is newer than another", async () => {
    const policy = await create(1)
    const [before, amid] = [fresh(), fresh()]
    await policy.save(before)
    await amidSteps(policy, () => policy.save(amid))
    expect(policy.optimizerSteps).toBe(20)
    expect(differing(amid, before)).toEqual([])
  })

  it("has a single version in a checkpoint, with its moments and step count", async () => {
    const [policy, other] = [await create(1), await create(2)]
    await policy.forwardBackward([row], { kind: "cross-entropy" })
    await policy.optimizerStep(step)
    const [before, amid] = [fresh(), fresh()]
    const wanted = await policy.store.checkpoint(before)
    let found: unknown
    await amidSteps(policy, async () => {
      found = await policy.store.checkpoint(amid)
    })
    expect(found).toEqual(wanted)
    for (const part of [".", "optimizer"]) expect(differing(join(amid, part), join(before, part))).toEqual([])
    await other.store.restore(wanted, amid)
    expect(other.optimizerSteps).toBe(1)
  })

  it("contains all updates requested before, awaited or not", async () => {
    const [policy, other] = [await create(1), await create(1)]
    for (const one of [policy, other]) await one.forwardBackward([row], { kind: "cross-entropy" })
    const [waited, not] = [fresh(), fresh()]
    await other.optimizerStep(step)
    await other.store.checkpoint(waited)
    const stepped = policy.optimizerStep(step)
    await policy.store.checkpoint(not)
    await stepped
    expect(differing(not, waited)).toEqual([])
  })

  it("does not delay calls that change no weights", async () => {
    const policy = await create(1)
    const critic = await policy.critic()
    const calls: Readonly<Record<string, () => Promise<unknown>>> = {
      sample: () => policy.sample({ ...request, key: [1, 2] }),
      logProbs: () => policy.logProbs([row]),
      forwardBackward: () => policy.forwardBackward([row], { kind: "cross-entropy" }),
      predict: () => critic.predict([row]),
    }
    for (const [name, call] of Object.entries(calls)) {
      const order: string[] = []
      const saved = policy.save(fresh()).then(() => order.push("saved"))
      await call().then(() => order.push(name))
      await saved
      expect(order).toEqual([name, "saved"])
    }
  })
})

describe("a model loaded during sampling", () => {
  it("is used as a whole, or not at all", async () => {
    const [policy, other] = [await create(1), await create(2)]
    const directory = fresh()
    await other.save(directory)
    const sampleBy = (one: NativePolicy) => one.sample({ ...request, key: [1, 2] })
    const [before, after] = [await sampleBy(policy), await sampleBy(other)]
    expect(before).not.toEqual(after)
    const loaded = policy.load(directory)
    const samples: ReturnType<typeof sampleBy>[] = []
    for (let i = 0; i < 40; i++) {
      samples.push(sampleBy(policy))
      await new Promise((resolve) => setImmediate(resolve))
    }
    await loaded
    for (const sample of await Promise.all(samples)) expect(sample).toEqual(after)
  })

  it("is used as a whole with an adapter, too", async () => {
    const lora = { rank: 2, alpha: 4 }
    const [policy, other] = [await create(1, { lora }), await create(1, { lora })]
    await other.forwardBackward([row], { kind: "cross-entropy" })
    await other.optimizerStep(step)
    const directory = fresh()
    await other.saveAdapter(directory)
    const wanted = await other.logits(request.prompt)
    const loaded = policy.loadAdapter(directory)
    expect(await policy.logits(request.prompt)).toEqual(wanted)
    await loaded
  })
})

describe("a queued turn", () => {
  it("is dropped if it is aborted, and later ones continue", async () => {
    const policy = await create(1)
    const [saved, controller] = [policy.save(fresh()), new AbortController()]
    const update = policy.optimizerStep(step)
    const sample = policy.sample({ ...request, key: [1, 2], signal: controller.signal })
    const last = policy.sample({ ...request, key: [1, 2] })
    controller.abort(new Error("enough"))
    await expect(sample).rejects.toThrow("enough")
    expect((await last).tokens.length).toBe(3)
    await Promise.all([saved, update])
  })

  it("fails when the policy is disposed", async () => {
    const policy = await create(1)
    const all = [policy.save(fresh()), policy.optimizerStep(step), policy.sample({ ...request, key: [1, 2] })]
    const settled = Promise.allSettled(all)
    await policy.dispose()
    for (const one of (await settled).slice(1))
      expect(one).toMatchObject({ status: "rejected", reason: { code: "DISPOSED" } })
  })
})

describe("a call in preparation", () => {
  it("is not overtaken by calls that depend on its result", async () => {
    const policy = await create(1)
    const gradient = () => policy.tensor("model.norm.weight", "gradients")
    const learn = () => policy.forwardBackward([row], { kind: "cross-entropy" })
    const [, found] = await Promise.all([learn(), gradient()])
    expect(found.some((value) => value !== 0)).toBe(true)
    await Promise.all([learn(), policy.clearGradients()])
    expect((await gradient()).every((value) => value === 0)).toBe(true)
  })

  it("uses the weights at the time of the call", async () => {
    const policy = await create(1)
    const wanted = await policy.logProbs([row])
    await policy.forwardBackward([row], { kind: "cross-entropy" })
    const [found] = await Promise.all([policy.logProbs([row]), policy.optimizerStep(step)])
    expect(found).toEqual(wanted)
    expect(await policy.logProbs([row])).not.toEqual(wanted)
  })
})

describe("a queued call", () => {
  const weight = "model.layers.0.mlp.down_proj.weight"
  const gradient = (policy: NativePolicy) => policy.tensor(weight, "gradients")
  const saved = async (policy: NativePolicy) => {
    const directory = fresh()
    await policy.save(directory)
    return directory
  }

  it("uses the loss as passed", async () => {
    const [policy, other] = [await create(1), await create(1)]
    const loss = () => ({ kind: "linear", coefficients: new Float32Array(9).fill(0.5) }) as const
    await other.forwardBackward([row], loss())
    const changed = loss()
    const work = [policy.load(await saved(policy)), policy.forwardBackward([row], changed)]
    changed.coefficients.fill(0)
    await Promise.all(work)
    expect(await gradient(policy)).toEqual(await gradient(other))
  })

  it("clears all gradients if aborted, like a running one", async () => {
    const policy = await create(1)
    await policy.forwardBackward([row], { kind: "cross-entropy" })
    expect((await gradient(policy)).some((value) => value !== 0)).toBe(true)
    const controller = new AbortController()
    const loaded = policy.load(await saved(policy))
    const waits = policy.forwardBackward([row], { kind: "cross-entropy" }, { signal: controller.signal })
    controller.abort(new Error("enough"))
    await expect(waits).rejects.toThrow("enough")
    await loaded
    expect((await gradient(policy)).every((value) => value === 0)).toBe(true)
  })
})
