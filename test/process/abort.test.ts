import { afterEach, beforeEach, describe, expect, it } from "vitest"
import type { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { byRow } from "../engine/by-row.ts"
import { surrogate } from "../engine/fixtures.ts"
import { aWhile, createPolicy, request, row, sampleLong, scoreLong, trainLong } from "./long-work.ts"

// Each kind of work here would take minutes: a test that ends at all shows that it was stopped.

let policy: NativePolicy
beforeEach(async () => {
  policy = await createPolicy()
})
afterEach(() => policy.dispose())

const norm = "model.layers.0.input_layernorm.weight"

/** What the policy does with a small piece of each kind of work. */
async function behaviour(of: NativePolicy) {
  const completion = await of.sample(request)
  const [logProbs] = byRow([row], await of.logProbs([row]))
  await of.clearGradients()
  const report = await of.forwardBackward([row, row], { kind: "cross-entropy" })
  return { completion, logProbs, report, gradient: await of.tensor(norm, "gradients") }
}

describe.each([
  ["sample", sampleLong],
  ["logProbs", scoreLong],
  ["forwardBackward", trainLong],
])("aborting %s", (_, work) => {
  it("rejects with the signal's reason, and the policy works on as before", async () => {
    const before = await behaviour(policy)
    const controller = new AbortController()
    const working = work(policy, { signal: controller.signal })
    await aWhile()
    const reason = new Error("enough")
    controller.abort(reason)
    await expect(working).rejects.toBe(reason)
    expect(await behaviour(policy)).toEqual(before)
  })

  it("rejects calls that have not started at once, in any order of aborts", async () => {
    const [running, waiting] = [new AbortController(), new AbortController()]
    const first = work(policy, { signal: running.signal })
    const second = work(policy, { signal: waiting.signal })
    await aWhile()
    waiting.abort(new Error("second"))
    await expect(second).rejects.toThrow("second")
    running.abort(new Error("first"))
    await expect(first).rejects.toThrow("first")
  })

  it("does nothing where the signal was aborted before", async () => {
    const signal = AbortSignal.abort(new Error("too late"))
    await expect(work(policy, { signal })).rejects.toThrow("too late")
  })

  it("has no effect after the end", async () => {
    const controller = new AbortController()
    await policy.sample({ ...request, signal: controller.signal })
    await policy.logProbs([row], { signal: controller.signal })
    await policy.forwardBackward([row], { kind: "cross-entropy" }, { signal: controller.signal })
    controller.abort()
    expect((await policy.sample(request)).tokens.length).toBe(8)
  })
})

describe("an aborted forwardBackward", () => {
  it("leaves no gradients, not even those of calls before it", async () => {
    await policy.forwardBackward([row], { kind: "cross-entropy" })
    expect((await policy.tensor(norm, "gradients")).some((value) => value !== 0)).toBe(true)
    const controller = new AbortController()
    const working = trainLong(policy, { signal: controller.signal })
    await aWhile()
    controller.abort()
    await expect(working).rejects.toMatchObject({ name: "AbortError" })
    expect((await policy.tensor(norm, "gradients")).every((value) => value === 0)).toBe(true)
  })

  it("of sequences may be stopped while log-probabilities are computed, and leaves none either", async () => {
    await policy.forwardBackward([row], { kind: "cross-entropy" })
    const logProbs = new Float32Array(64).fill(-6)
    const rows = new Array(20_000).fill({ ...row, segments: [{ ...row.segments[0], advantage: 1, logProbs }] })
    const controller = new AbortController()
    const working = policy.forwardBackward(rows, surrogate({ importanceSamplingLevel: "sequence" }), {
      signal: controller.signal,
    })
    await aWhile()
    controller.abort(new Error("enough"))
    await expect(working).rejects.toThrow("enough")
    expect((await policy.tensor(norm, "gradients")).every((value) => value === 0)).toBe(true)
  })
})

describe("dispose()", () => {
  // Samples and scores do not wait for each other: each runs between the operations of the other.
  const sample = (of: NativePolicy) => of.sample(request)
  const score = (of: NativePolicy) => of.logits(request.prompt)
  it.each([
    ["sample", sampleLong, [sample]],
    ["logProbs", scoreLong, [score]],
    ["forwardBackward", trainLong, [score, sample]],
  ])("rejects what runs and what waits behind a running %s", async (_, work, waiting) => {
    const results = Promise.allSettled([work(policy), ...waiting.map((wait) => wait(policy))])
    await aWhile()
    await policy.dispose()
    for (const result of await results) {
      expect(result).toMatchObject({ status: "rejected", reason: { name: "GigpoError", code: "DISPOSED" } })
    }
  })

  it("rejects a running logProbs between whose operations a sample ended", async () => {
    const running = Promise.allSettled([scoreLong(policy)])
    await aWhile()
    expect((await policy.sample(request)).tokens.length).toBe(8)
    await policy.dispose()
    const rejected = { status: "rejected", reason: { name: "GigpoError", code: "DISPOSED" } }
    expect(await running).toMatchObject([rejected])
  })
})
