import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Completion, SampleRequest } from "../../src/engine/engine.ts"
import { Constraint } from "../../src/engine/native/constraint.ts"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { character } from "../../src/grammar/characters.ts"
import { repeat } from "../../src/grammar/node.ts"
import type { ModelConfig } from "../../src/model-files/model-config.ts"
import { Random } from "../../src/util/random.ts"

// Completions that tell of their tokens as they come, and end before they are whole. What is left under way is found by counting:
// what the engine samples is known to the token.

const model: ModelConfig = {
  ...{ architecture: "Qwen2", rmsNormEpsilon: 1e-6, ropeTheta: 1e4, tieEmbeddings: true },
  ...{ queryKeyValueBias: true, queryKeyNorm: false, maxPositions: 40_000, hiddenSize: 8, layers: 1, heads: 2 },
  ...{ keyValueHeads: 1, headSize: 4, intermediateSize: 16, vocabularySize: 300 },
}
/** More tokens than an engine samples before a callback can end the completion. */
const endless = 39_000

let policy: NativePolicy
beforeAll(async () => {
  policy = await NativePolicy.create(model, new Random(1), { threads: 2 })
})
afterAll(() => policy.dispose())

const request = (i: number, more: Partial<SampleRequest> = {}): SampleRequest => ({
  ...{ prompt: Int32Array.of(1 + i, 2, 3), maxTokens: 20 + i, stopTokens: [5], key: [i, 7], ...more },
})
const sampleAll = (requests: readonly SampleRequest[]) => Promise.all(requests.map((one) => policy.sample(one)))
const forever: Partial<SampleRequest> = { maxTokens: endless, stopTokens: [] }

const expectRejected = (promise: Promise<unknown>) =>
  promise.then(
    () => expect.unreachable(),
    (error: unknown) => error,
  )

/** That nothing is under way any more: what is sampled from here on is what is asked for. */
async function expectIdle(): Promise<void> {
  const before = policy.statistics.sampledTokens
  const { tokens } = await policy.sample(request(3, { maxTokens: 7, stopTokens: [] }))
  expect(policy.statistics.sampledTokens - before).toBe(tokens.length)
}

describe("onTokens", () => {
  it("receives every token once, in order, of many completions in one turn of the event loop", async () => {
    const requests = Array.from({ length: 16 }, (_, i) => request(i))
    const wanted = await sampleAll(requests)
    const told = requests.map((): number[] => [])
    let [turns, inTurn] = [0, false]
    const streamed = await sampleAll(
      requests.map((one, i) => ({
        ...one,
        onTokens: (tokens: Int32Array) => {
          expect(tokens).toBeInstanceOf(Int32Array)
          expect(tokens.length).toBeGreaterThan(0)
          told[i]!.push(...tokens)
          if (!inTurn) turns++
          inTurn = true
          queueMicrotask(() => {
            inTurn = false
          })
        },
      })),
    )
    expect(streamed).toEqual(wanted)
    expect(told).toEqual(wanted.map(({ tokens }) => Array.from(tokens)))
    const [most, all] = [Math.max(...told.map(({ length }) => length)), told.flat().length]
    expect(turns).toBeLessThanOrEqual(most + requests.length) // steps: the last may begin when the first has ended
    expect(all).toBeGreaterThan(3 * (most + requests.length))
  })

  it("ends the completion by returning true only", async () => {
    const told: number[] = []
    let calls = 0
    const others = Array.from({ length: 8 }, (_, i) => request(i))
    const wanted = await sampleAll(others)
    const [{ tokens, logProbs, finishReason }, ...found] = (await sampleAll([
      request(20, {
        ...forever,
        onTokens: (some) => {
          calls++
          told.push(...some)
          return calls === 3
        },
      }),
      ...others.map((one, i) => ({ ...one, onTokens: () => [undefined, false, 1, "true", {}][i % 5] })),
    ])) as [Completion, ...Completion[]]
    expect(calls).toBe(3)
    expect(finishReason).toBe("stop")
    expect(tokens.length).toBeGreaterThanOrEqual(told.length)
    expect(tokens.length).toBeLessThan(endless)
    expect(logProbs.length).toBe(tokens.length)
    expect(Array.from(tokens.subarray(0, told.length))).toEqual(told)
    expect(found).toEqual(wanted)
    await expectIdle()
  })

  it("makes only its own call fail by throwing, and may be slow", async () => {
    const others = Array.from({ length: 8 }, (_, i) => request(i))
    const wanted = await sampleAll(others)
    const problem = new RangeError("not this one")
    let calls = 0
    const onTokens = () => {
      calls++
      throw problem
    }
    const thrown = policy.sample(request(20, { ...forever, onTokens }))
    const number = policy.sample(
      request(21, {
        onTokens: () => {
          throw 7
        },
      }),
    )
    const slow = (tokens: Int32Array) => {
      if (tokens[0]! % 5 === 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3) // holds up the event loop
    }
    const found = sampleAll(others.map((one) => ({ ...one, onTokens: slow })))
    expect(await Promise.all([thrown, number].map(expectRejected))).toEqual([problem, 7])
    expect(await expectRejected(thrown)).toBe(problem)
    expect(await found).toEqual(wanted)
    expect(calls).toBe(1)
    await expectIdle()
  })

  it("is not called after an abort, which frees the place before the next step", async () => {
    const controller = new AbortController()
    let calls = 0
    const onTokens = () => {
      calls++
      controller.abort(new Error("enough"))
    }
    const aborted = policy.sample(request(20, { ...forever, onTokens, signal: controller.signal }))
    await expect(aborted).rejects.toThrow("enough")
    await expectIdle()
    expect(calls).toBe(1)
  })

  it("is not called after the policy is disposed, whose calls fail", async () => {
    const other = await NativePolicy.create(model, new Random(1), { threads: 1 })
    let calls = 0
    let disposed: Promise<void> | undefined
    const failed = other.sample(
      request(1, {
        ...forever,
        onTokens: () => {
          calls++
          disposed ??= other.dispose()
        },
      }),
    )
    await expect(failed).rejects.toMatchObject({ code: "DISPOSED" })
    await disposed
    const before = calls
    await new Promise((resolve) => setImmediate(resolve))
    expect(calls).toBe(before)
  })

  it.each([1, "x", {}])("rejects %o", async (onTokens) => {
    await expect(policy.sample({ ...request(1), onTokens: onTokens as never })).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: expect.stringContaining("onTokens must be a function"),
    })
  })
})

describe("topTokens", () => {
  // One of "abc", three times; token b is byte b and 256 ends a text.
  const abc = new Constraint(repeat(character([[97, 99]]), 3, 3), {
    bytes: Uint8Array.from({ length: 256 }, (_, byte) => byte),
    offsets: Int32Array.from({ length: 258 }, (_, token) => Math.min(token, 256)),
    endTokens: Int32Array.of(256),
  })

  it("describes the sampling distribution, and does not change the samples", async () => {
    const requests = [
      request(0),
      request(1, { temperature: 0 }),
      request(2, { temperature: 0.3 }),
      request(3, { constraint: abc, stopTokens: [256] }),
      request(4, { constraint: abc, stopTokens: [256], temperature: 2 }),
    ]
    const wanted = await sampleAll(requests)
    const found = await sampleAll(requests.map((one, i) => ({ ...one, topTokens: 20 - i })))
    for (const [i, { top, ...rest }] of found.entries()) {
      const { prompt, temperature = 1, constraint } = requests[i]!
      expect(rest).toEqual(wanted[i])
      expect(top!.length).toBe(rest.tokens.length)
      const logits = await policy.logits(Int32Array.of(...prompt, ...rest.tokens))
      for (const [place, known] of top!.entries()) {
        const allowed = constraint ? (place < 3 ? [97, 98, 99] : [256]) : Array.from({ length: 300 }, (_, t) => t)
        expect(known.length).toBe(Math.min(20 - i, allowed.length))
        const row = logits.subarray((prompt.length - 1 + place) * 300, (prompt.length + place) * 300)
        const tempered = allowed.map((token) => row[token]! / (temperature || 1))
        const logSum = Math.log(tempered.reduce((sum, value) => sum + Math.exp(value), 0))
        const best = tempered.map((value) => value - logSum).sort((a, b) => b - a)
        for (const [rank, { token, logProb }] of known.entries()) {
          expect(allowed).toContain(token)
          expect(Math.abs(logProb - best[rank]!)).toBeLessThan(1e-4)
          expect(Math.abs(logProb - (row[token]! / (temperature || 1) - logSum))).toBeLessThan(1e-4)
          if (token === rest.tokens[place]) expect(Math.abs(logProb - rest.logProbs[place]!)).toBeLessThan(1e-5)
        }
        expect(new Set(known.map(({ token }) => token)).size).toBe(known.length)
        if (temperature === 0) expect(known[0]!.token).toBe(rest.tokens[place])
      }
    }
  })

  it.each([-1, 21, 1.5, Number.NaN, "3"])("rejects %o", async (topTokens) => {
    await expect(policy.sample({ ...request(1), topTokens: topTokens as number })).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: expect.stringContaining("from 0 to 20"),
    })
  })

  it("leaks no memory over 10,000 requests that stream, end early, are aborted or constrained", async () => {
    setFlagsFromString("--expose-gc")
    const collect: () => void = runInNewContext("gc")
    const short = async (i: number) => {
      const controller = new AbortController()
      const onTokens = () => {
        if (i % 4 === 1) controller.abort()
        return i % 4 === 2
      }
      const kind = i % 4 === 3 ? { constraint: abc, topTokens: 5 } : { onTokens, signal: controller.signal }
      await policy.sample(request(i % 250, { maxTokens: 6, key: [i, 1], ...kind })).catch(() => undefined)
    }
    const resident = async () => {
      for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve, collect()))
      return process.memoryUsage().rss
    }
    const round = async (first: number, count: number) => {
      for (let i = first; i < first + count; i += 100)
        await Promise.all(Array.from({ length: 100 }, (_, j) => short(i + j)))
      return await resident()
    }
    const before = await round(0, 3000)
    expect((await round(3000, 10_000)) - before).toBeLessThan(16e6) // 1.6 KB a request
    await expectIdle()
  }, 60_000)
})
