import { afterEach, beforeAll, describe, expect, it } from "vitest"
import type { Completion, SampleRequest } from "../../src/engine/engine.ts"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import type { NativePolicyOptions } from "../../src/engine/native/options.ts"
import { stepSequence } from "../../src/engine/sequence.ts"
import { Random } from "../../src/util/random.ts"
import { architectures, crossEntropy, logProbsOf, modelPath, randomTokens } from "./fixtures.ts"

// A completion depends on its own request alone: not on what else runs, on the order, on the size of the cache, on what the
// cache holds, or on the number of threads. "Same" means the same bits.

const open: NativePolicy[] = []
async function openPolicy(name: string, options: NativePolicyOptions = {}): Promise<NativePolicy> {
  const policy = await NativePolicy.open(modelPath(name), { maxPositions: 2048, kvCacheBytes: 2 ** 20, ...options })
  open.push(policy)
  return policy
}
afterEach(async () => {
  for (const policy of open.splice(0)) await policy.dispose()
})

/** 64 completions: eight groups of eight with one prompt each, of lengths that fill pages of the cache or do not. */
function makeRequests(): SampleRequest[] {
  const random = new Random(12)
  return [1, 7, 16, 17, 33, 48, 70, 120].flatMap((length, group) => {
    const prompt = randomTokens(length, random)
    return Array.from({ length: 8 }, (_, member) => ({
      prompt,
      maxTokens: 4 + 5 * member,
      temperature: [1, 0.7, 0][member % 3]!,
      stopTokens: [member, 60],
      key: random.derive(group, member).key,
    }))
  })
}

async function sampleAll(policy: NativePolicy, requests: readonly SampleRequest[]): Promise<Completion[]> {
  return await Promise.all(requests.map((request) => policy.sample(request)))
}

describe.each(architectures)("completions of %s", (name) => {
  const requests = makeRequests()
  const alone: Completion[] = []

  beforeAll(async () => {
    const policy = await openPolicy(name)
    for (const request of requests) {
      await policy.load(modelPath(name)) // forgets what the cache holds
      alone.push(await policy.sample(request))
    }
    expect(policy.statistics).toMatchObject({ reusedTokens: 0, preemptions: 0 })
  })

  it("are long and varied enough to compare", () => {
    const reasons = alone.map(({ finishReason }) => finishReason)
    expect(reasons.filter((reason) => reason === "stop").length).toBeGreaterThan(8)
    expect(reasons.filter((reason) => reason === "length").length).toBeGreaterThan(8)
    expect(new Set(alone.map(({ tokens }) => tokens.join())).size).toBeGreaterThan(56)
  })

  it("are the same one after another, with cached prefixes", async () => {
    const policy = await openPolicy(name)
    for (const [index, request] of requests.entries()) expect(await policy.sample(request)).toEqual(alone[index])
    expect(policy.statistics.reusedTokens).toBeGreaterThan(7 * (16 + 32 + 32 + 64 + 112) - 1)
  })

  it("are the same all at once", async () => {
    const policy = await openPolicy(name)
    expect(await sampleAll(policy, requests)).toEqual(alone)
    expect(policy.statistics.reusedTokens).toBeGreaterThan(0)
  })

  it("are the same in any order", async () => {
    const policy = await openPolicy(name)
    const order = new Random(3).shuffled([...requests.keys()])
    const completions = await sampleAll(
      policy,
      order.map((index) => requests[index]!),
    )
    expect(completions).toEqual(order.map((index) => alone[index]))
  })

  it("are the same with a cache so small that sequences are preempted", async () => {
    const policy = await openPolicy(name, { kvCacheBytes: 100_000 })
    // Each of these comes to need most of the cache.
    const hungry = [1, 2, 3, 4].map((member): SampleRequest => {
      return { prompt: Int32Array.of(member, 5, 6), maxTokens: 130, stopTokens: [], key: [member, 7] }
    })
    // On a busy machine the first may have ended before the others are asked for.
    for (let tries = 0; tries < 10 && policy.statistics.preemptions === 0; tries++)
      expect((await sampleAll(policy, [...hungry, ...requests])).slice(hungry.length)).toEqual(alone)
    expect(policy.statistics.preemptions).toBeGreaterThan(0)
  })

  it("are the same after a prompt that takes several steps", async () => {
    const policy = await openPolicy(name, { kvCacheBytes: 2 ** 23 })
    const prompt = randomTokens(1900, new Random(5))
    const long: SampleRequest = { prompt, maxTokens: 20, stopTokens: [], key: [4, 5] }
    const all = await sampleAll(policy, [long, ...requests, long])
    expect(all.slice(1, -1)).toEqual(alone)
    expect(all.at(-1)).toEqual(all[0])
    const other = await openPolicy(name, { kvCacheBytes: 2 ** 23 })
    expect(await other.sample(long)).toEqual(all[0])
  })

  it("are the same with any number of threads", async () => {
    const policy = await openPolicy(name, { threads: 5 })
    expect(await sampleAll(policy, requests)).toEqual(alone)
  })

  it("are the same while others are cancelled", async () => {
    const policy = await openPolicy(name)
    const controller = new AbortController()
    const { signal } = controller
    const doomed = requests.map((request, index) =>
      policy.sample({ ...request, maxTokens: 500, key: [index, 9], stopTokens: [], signal }),
    )
    const wanted = sampleAll(policy, requests)
    setImmediate(() => controller.abort(new Error("enough")))
    const results = await Promise.allSettled(doomed)
    expect(results.filter(({ status }) => status === "rejected").length).toBeGreaterThan(0)
    expect(await wanted).toEqual(alone)
  })
})

describe("the cache", () => {
  const random = new Random(21)
  const request = (prompt: Int32Array, member: number, maxTokens = 9): SampleRequest => ({
    prompt,
    maxTokens,
    stopTokens: [],
    key: [member, 1],
  })

  it("computes the prompt of a group once", async () => {
    const policy = await openPolicy("qwen3")
    const prompt = randomTokens(100, random)
    await sampleAll(
      policy,
      Array.from({ length: 8 }, (_, member) => request(prompt, member)),
    )
    // Six whole pages of 16 tokens are shared; each member computes the other 4 and all it sampled but the last.
    expect(policy.statistics).toEqual({
      computedTokens: 100 + 7 * 4 + 8 * 8,
      reusedTokens: 7 * 96,
      sampledTokens: 8 * 9,
      preemptions: 0,
    })
  })

  it("contains an episode's earlier steps, including completions", async () => {
    const policy = await openPolicy("qwen3")
    const first = randomTokens(50, random)
    const { tokens } = await policy.sample(request(first, 0, 30))
    const before = policy.statistics.reusedTokens
    await policy.sample(request(Int32Array.from([...first, ...tokens, ...randomTokens(20, random)]), 1))
    expect(policy.statistics.reusedTokens - before).toBe(64) // of 79 computed tokens, in whole pages
  })

  it("always recomputes the last token of a prompt, whose logits are needed", async () => {
    const policy = await openPolicy("qwen3")
    const prompt = randomTokens(64, random)
    const first = await policy.sample(request(prompt, 0))
    expect(await policy.sample(request(prompt, 0))).toEqual(first)
    expect(policy.statistics.reusedTokens).toBe(48)
  })

  it("is cleared when the weights change", async () => {
    const policy = await openPolicy("qwen3")
    const prompt = randomTokens(64, random)
    await policy.sample(request(prompt, 0))
    await policy.forwardBackward([stepSequence(prompt, randomTokens(9, random))], crossEntropy)
    await policy.optimizerStep({ learningRate: 0.01 })
    const { tokens, logProbs } = await policy.sample(request(prompt, 0))
    expect(policy.statistics.reusedTokens).toBe(0)
    const [wanted] = await logProbsOf(policy, [stepSequence(prompt, tokens)])
    for (const [index, value] of logProbs.entries()) expect(value).toBeCloseTo(wanted![index]!, 4)
  })

  it("gives correct results after any history: small, full, and with equal pages after different prefixes", async () => {
    const page = () => randomTokens(16, random)
    const [a, b, c, tail] = [page(), page(), page(), page().slice(0, 5)]
    const beginnings = [[a], [b], [c]].flatMap((one) => [one, ...[a, b, c].map((two) => [...one, two])])
    const all = beginnings.flatMap((two) => [two, ...[a, b, c].map((three) => [...two, three])])
    const prompts = all.map((pages) => Int32Array.from([...pages, tail].flatMap((part) => [...part])))
    const fresh = await openPolicy("qwen3")
    const wanted: Completion[] = []
    for (const [index, prompt] of prompts.entries()) {
      await fresh.load(modelPath("qwen3"))
      wanted.push(await fresh.sample(request(prompt, index, 3)))
    }
    const pageBytes = 8192
    for (const pages of [6, 9, 14]) {
      const policy = await openPolicy("qwen3", { kvCacheBytes: pages * pageBytes })
      for (let i = 0; i < 400; i++) {
        const index = random.below(prompts.length)
        expect(await policy.sample(request(prompts[index]!, index, 3))).toEqual(wanted[index])
      }
      expect(policy.statistics.reusedTokens).toBeGreaterThan(1000)
    }
  })

  it("evicts a chain of pages from its end, so that the rest can still be found", async () => {
    const policy = await openPolicy("qwen3", { kvCacheBytes: 10 * 8192 })
    const prompt = randomTokens(100, random)
    await policy.sample(request(prompt, 0, 1)) // 6 shared pages, and a seventh
    await policy.sample(request(randomTokens(90, random), 0, 1)) // 6 pages: 4 that were unused, and 2 of the 6
    await policy.sample(request(prompt, 1, 1))
    expect(policy.statistics.reusedTokens).toBe(4 * 16)
  })

  it("admits only sequences that can continue for a while", async () => {
    const policy = await openPolicy("qwen3", { kvCacheBytes: 24 * 8192 })
    // Two pages each, and soon a third: 12 would find room and none to go on with.
    const requests = Array.from({ length: 12 }, (_, member) => request(randomTokens(31, random), member, 16))
    await sampleAll(policy, requests)
    expect(policy.statistics.preemptions).toBe(0)
  })

  it("distinguishes two prompts that differ in one token of an early page", async () => {
    const policy = await openPolicy("qwen3")
    const prompt = randomTokens(60, random)
    const other = prompt.with(3, (prompt[3]! + 1) % 67)
    await policy.sample(request(prompt, 0))
    await policy.sample(request(other, 0))
    expect(policy.statistics.reusedTokens).toBe(0)
  })
})
