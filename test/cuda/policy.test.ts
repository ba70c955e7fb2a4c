import { afterEach, describe, expect, it, vi } from "vitest"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import type { NativePolicyOptions } from "../../src/engine/native/options.ts"
import { groupAnchors } from "../../src/kernels/group-anchors.ts"
import { policyLoss } from "../../src/kernels/policy-loss.ts"
import { tokenLogProbs } from "../../src/kernels/token-log-probs.ts"
import { deviceReport } from "../../src/native/device.ts"
import { Random } from "../../src/util/random.ts"
import {
  adapterPath,
  adapters,
  allLogits,
  architectures,
  crossEntropy,
  gradients,
  modelPath,
  normError,
  readExpected,
  readTensors,
  relativeError,
  rolloutRows,
  rowsForCritic,
  weightNames,
} from "../engine/fixtures.ts"

// The policy on a CUDA device, against results of transformers. Without a GPU, `npm run test:cuda` runs these on the
// emulator of test/cuda/emulator.

const { unavailable } = deviceReport()
const onCard = describe.skipIf(unavailable !== undefined)
const titled = (title: string) => (unavailable ? `${title} (skipped: ${unavailable.message})` : title)
const small = { device: "cuda", kvCacheBytes: 2 ** 20, microBatchTokens: 256 } as const

async function using<T>(
  options: NativePolicyOptions,
  name: string,
  work: (policy: NativePolicy) => Promise<T>,
): Promise<T> {
  const policy = await NativePolicy.open(modelPath(name), options)
  try {
    return await work(policy)
  } finally {
    await policy.dispose()
  }
}

onCard.each(architectures)(titled("the model %s on a CUDA device"), (name) => {
  const expected = readExpected(name)
  const truth = expected.tensors.get("logits")!

  it("computes logits, losses and gradients in float32", async () => {
    await using({ ...small, precision: "float32" }, name, async (policy) => {
      expect(relativeError(await allLogits(policy, expected), truth)).toBeLessThan(1e-4)
      const [one] = expected.policy
      const report = await policy.forwardBackward(one!.rows, one!.loss)
      expect(report.loss).toBeCloseTo(one!.report.loss, 5)
      const names = weightNames(expected)
      for (const [weight, gradient] of await gradients(policy, names))
        expect(relativeError(gradient, expected.tensors.get(`policy.0.${weight}`)!), weight).toBeLessThan(1e-4)
    })
  })

  it("has an error in bfloat16 comparable to that of transformers", async () => {
    const theirs = normError(readTensors(`${modelPath(name)}/bf16.safetensors`).get("logits")!, truth)
    const ours = await using(small, name, async (policy) => normError(await allLogits(policy, expected), truth))
    expect(ours).toBeLessThan(1.2 * theirs)
  })

  it("decodes greedily the expected tokens", async () => {
    await using({ ...small, precision: "float32" }, name, async (policy) => {
      for (const { prompt, completion } of expected.greedy) {
        const request = { prompt, maxTokens: completion.length, temperature: 0, stopTokens: [], key: [1, 2] } as const
        const completions = await Promise.all([policy.sample(request), policy.sample(request)])
        for (const { tokens } of completions) expect([...tokens]).toEqual(completion)
      }
    })
  })
})

onCard.each(adapters)(titled("an adapter of %s on a CUDA device"), (name) => {
  it("computes the logits that PEFT does", async () => {
    const expected = readExpected(name, adapterPath(name))
    const policy = await NativePolicy.open(adapterPath(name), { ...small, precision: "float32", base: modelPath(name) })
    try {
      const error = relativeError(await allLogits(policy, expected), expected.tensors.get("logits")!)
      expect(error).toBeLessThan(1e-4)
    } finally {
      await policy.dispose()
    }
  })
})

onCard(titled("a CUDA device without cuBLASLt"), () => {
  const before = process.env.GIGPO_CUBLASLT
  afterEach(() => {
    if (before === undefined) delete process.env.GIGPO_CUBLASLT
    else process.env.GIGPO_CUBLASLT = before
    vi.restoreAllMocks()
  })
  const opened = () => using(small, "qwen3", async ({ memoryPlan }) => memoryPlan.withoutLibrary)

  it("stores the reason in the plan and warns once", async () => {
    const warnings = vi.spyOn(process, "emitWarning").mockImplementation(() => {})
    process.env.GIGPO_CUBLASLT = "off"
    expect(await opened()).toBe("GIGPO_CUBLASLT is off")
    expect(warnings).not.toHaveBeenCalled()
    process.env.GIGPO_CUBLASLT = "/nowhere/libcublasLt.so.13"
    for (const reason of [await opened(), await opened()]) expect(reason).toContain("/nowhere/libcublasLt.so.13")
    expect(warnings).toHaveBeenCalledTimes(1)
    expect(warnings.mock.calls[0]![0]).toContain(
      "own kernels, because cuBLASLt is not available (/nowhere/libcublasLt.so.13",
    )
    const onCpu = await using({ device: "cpu" }, "qwen3", async ({ memoryPlan }) => memoryPlan)
    expect(onCpu).not.toHaveProperty("withoutLibrary")
  })
})

onCard(titled("training on a CUDA device"), () => {
  it("lowers the loss with bf16 moments, and keeps the reference policy unchanged", async () => {
    await using({ ...small, optimizerPrecision: "bfloat16" }, "qwen3", async (policy) => {
      const rows = await rolloutRows(policy, new Random(3))
      await policy.reference.freeze()
      const before = await policy.logProbs(rows, { model: "reference" })
      const losses: number[] = []
      for (let step = 0; step < 4; step++) {
        losses.push((await policy.forwardBackward(rows, crossEntropy)).loss)
        await policy.optimizerStep({ learningRate: 1e-2 })
      }
      expect(losses[3]!).toBeLessThan(losses[0]!)
      expect(await policy.logProbs(rows, { model: "reference" })).toEqual(before)
      expect(await policy.logProbs(rows)).not.toEqual(before)
    })
  })

  it.each([undefined, { rank: 4 }])("trains a critic as the CPU does, with the adapter %j", async (lora) => {
    const train = async (options: NativePolicyOptions): Promise<number[]> => {
      let found: number[] = []
      await using({ ...options, critic: true, ...(lora && { lora }) }, "qwen3", async (policy) => {
        const rows = await rowsForCritic(policy)
        const critic = await policy.critic()
        for (let step = 0; step < 4; step++) {
          found.push((await critic.forwardBackward(rows, { kind: "clipped-value", clip: 0.3 })).loss)
          await critic.optimizerStep({ learningRate: 1e-2 })
        }
        found = [...found, ...(await critic.predict(rows))]
      })
      return found
    }
    const wanted = await train({ device: "cpu" })
    expect(relativeError(await train({ ...small, precision: "float32" }), wanted)).toBeLessThan(1e-3)
    const half = await train(small)
    expect(normError(half.slice(0, 4), wanted.slice(0, 4))).toBeLessThan(0.03)
    expect(half[3]!).toBeLessThan(half[0]!)
  })

  it("computes token log-probabilities as the CPU does", () => {
    const random = new Random(5)
    const [vocabulary, count] = [301, 40]
    const logits = Float32Array.from({ length: vocabulary * count }, () => 8 * random.uniform())
    const tokens = Int32Array.from({ length: count }, () => random.below(vocabulary))
    const [found, wanted] = (["cuda", "cpu"] as const).map((device) =>
      tokenLogProbs(logits, vocabulary, tokens, { temperature: 0.7, device }),
    )
    expect(relativeError(found!.logProbs, wanted!.logProbs)).toBeLessThan(2e-6)
    expect(relativeError(found!.entropies, wanted!.entropies)).toBeLessThan(2e-6)
    const none = tokenLogProbs(new Float32Array(0), vocabulary, new Int32Array(0), { device: "cuda" })
    expect(none.logProbs.length).toBe(0)
  })

  it.each(["token", "sequence"] as const)(
    "computes the clipped surrogate as the CPU does, with one ratio per %s",
    (importanceSamplingLevel) => {
      const random = new Random(6)
      const lengths = Int32Array.of(5, 0, 33, 1, 70)
      const column = (scale: number) => Float32Array.from({ length: 109 }, () => scale * (random.uniform() - 0.5))
      const logProbs = column(2)
      const input = {
        logProbs,
        oldLogProbs: logProbs.map((value) => value + random.uniform() - 0.5),
        referenceLogProbs: logProbs.map((value) => value + random.uniform() - 0.5),
        advantages: column(3),
        mask: column(1).map((value) => (value > -0.3 ? 1 : 0)),
        lengths,
      }
      for (const given of [input, { ...input, referenceLogProbs: undefined as unknown as Float32Array }]) {
        const options = {
          importanceSamplingLevel,
          aggregation: "sequence-mean-token-mean",
          klWeight: given === input ? 0.1 : 0,
        } as const
        const [found, wanted] = (["cuda", "cpu"] as const).map((device) => policyLoss(given, { ...options, device }))
        const { gradient, ...report } = found!
        expect(relativeError(gradient, wanted!.gradient)).toBeLessThan(1e-6)
        for (const [name, value] of Object.entries(report)) expect(value).toBeCloseTo(wanted![name as "loss"], 10)
      }
    },
  )

  it("groups anchors as the CPU does, in concurrent calls whose inputs change afterwards", async () => {
    const random = new Random(4)
    const states = Array.from({ length: 500 }, () => `state ${"x".repeat(random.below(40))} ${random.below(60)}`)
    const tasks = Int32Array.from(states, (_, i) => i % 7)
    const wanted = groupAnchors(tasks, states)
    const bytes = Buffer.from(states.join(""))
    const offsets = new Float64Array(states.length + 1)
    for (const [i, state] of states.entries()) offsets[i + 1] = offsets[i]! + state.length
    const found = [
      groupAnchors(tasks, { bytes, offsets }, { device: "cuda" }),
      groupAnchors(tasks, states, { device: "cuda" }),
      groupAnchors(tasks.toReversed(), states.toReversed(), { device: "cuda" }),
    ]
    bytes.fill(0)
    offsets.fill(0)
    expect(await found[0]).toEqual(wanted)
    expect(await found[1]).toEqual(wanted)
    expect(await found[2]).toEqual(groupAnchors(tasks.toReversed(), states.toReversed()))
  })
})
