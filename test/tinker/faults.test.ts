import { describe, expect, it, vi } from "vitest"
import type { RemoteEngine } from "../../src/engine/remote/remote-engine.ts"
import { stepSequence } from "../../src/engine/sequence.ts"
import type { Environment } from "../../src/environment/environment.ts"
import { byRow } from "../engine/by-row.ts"
import { doorsEnvironment } from "../rollout/doors.ts"
import { TinyModel } from "../training/tiny.ts"
import { type Fault, Servings } from "./serving.ts"

const doors = new TinyModel(doorsEnvironment() as Environment)
const servings = new Servings()

const status = (code: number, body?: unknown, headers?: Record<string, string>): Fault => {
  return { kind: "status", status: code, body, ...(headers && { headers }) }
}
const soon = { "retry-after-ms": "10" }
const rows = [
  stepSequence(Int32Array.of(5, 6, 7), Int32Array.of(8, 9, 10)),
  stepSequence(Int32Array.of(5, 6), Int32Array.of(11)),
]
const adam = { learningRate: 1e-2, maxGradientNorm: Number.POSITIVE_INFINITY }

/** What it says of the rows after a step. */
async function learned(engine: RemoteEngine): Promise<number[]> {
  await engine.forwardBackward(rows, { kind: "cross-entropy" })
  await engine.optimizerStep(adam)
  return byRow(rows, await engine.logProbs(rows)).flatMap(({ logProbs }) => Array.from(logProbs))
}

const capabilities = {
  ...({
    reduction: "sum",
    tokenWeights: false,
    clippedSurrogate: true,
    customLoss: "cross_entropy",
    gradientClipping: true,
  } as const),
  ...{ gradientNorm: true, idempotent: true, logProbs: true, reference: true, clearGradients: true, sampleKeys: true },
}
const sample = {
  ...{ prompt: Int32Array.of(5, 6, 7), maxTokens: 4, stopTokens: [], key: [1, 2] as const },
}

describe("a request that fails once", () => {
  const faults: Record<string, Fault> = {
    "500": status(500),
    "502": status(502),
    "429 with a time": status(429, { error: "too many" }, soon),
    "408": status(408, undefined, soon),
    "409 of another kind": status(409, { error: "busy" }, soon),
    "503": status(503, undefined, soon),
    "a connection cut before": { kind: "cut-before" },
    "a connection cut after it was done": { kind: "cut-after" },
    "half an answer": { kind: "cut-mid" },
  }
  it("is done once: submitting, and asking for results", async () => {
    const plain = await (await servings.serve(doors.directory)).connect({ rank: 4, capabilities })
    const expected = await learned(plain)
    const drawn = await plain.sample(sample)
    const paths = [
      "/forward_backward",
      "/optim_step",
      "/create_model",
      "/create_session",
      "/retrieve_future",
      "/asample",
    ]
    for (const fault of Object.values(faults))
      await Promise.all(
        paths.map(async (path) => {
          const serving = await servings.serve(doors.directory, {}, (asked, nth) =>
            asked === path && nth === 0 ? fault : undefined,
          )
          const engine = await serving.connect({ rank: 4, capabilities })
          expect(await learned(engine)).toEqual(expected)
          expect(await engine.sample(sample)).toMatchObject({ tokens: drawn.tokens, logProbs: drawn.logProbs })
        }),
      )
  })
})

describe("a request that continues failing", () => {
  const failing = async (path: string, fault: Fault, more: object = {}) => {
    const serving = await servings.serve(doors.directory, {}, (asked) => (asked === path ? fault : undefined))
    return { serving, engine: await serving.connect({ rank: 4, capabilities, ...more }) }
  }

  it("ends, within its patience, and says what is safe", async () => {
    const { engine } = await failing("/optim_step", status(429, { error: "full" }, soon), { requestTimeout: 0.2 })
    await engine.forwardBackward(rows, { kind: "cross-entropy" })
    await expect(engine.optimizerStep(adam)).rejects.toMatchObject({ code: "ENGINE_LOST", message: /full.*resume/s })
    // What the server holds is not what this side thinks.
    await expect(engine.forwardBackward(rows, { kind: "cross-entropy" })).rejects.toMatchObject({ code: "ENGINE_LOST" })
  })

  it("is not sent again where it was rejected", async () => {
    for (const code of [400, 401, 403, 404, 422]) {
      const { engine, serving } = await failing("/forward_backward", status(code, { detail: "no such key: mask" }))
      await expect(engine.forwardBackward(rows, { kind: "cross-entropy" })).rejects.toMatchObject({
        code: "ENGINE_REJECTED",
        message: expect.stringContaining("mask"),
      })
      expect(serving.asked.filter((path) => path === "/forward_backward")).toHaveLength(1)
    }
  })

  it("is not sent again where the server would do it twice", async () => {
    const twice = { ...capabilities, idempotent: false }
    for (const fault of [status(500), { kind: "cut-after" } as const]) {
      const { engine, serving } = await failing("/optim_step", fault, { capabilities: twice })
      await engine.forwardBackward(rows, { kind: "cross-entropy" })
      await expect(engine.optimizerStep(adam)).rejects.toMatchObject({
        code: "ENGINE_LOST",
        message: /last checkpoint/,
      })
      expect(serving.asked.filter((path) => path === "/optim_step")).toHaveLength(1)
    }
    // What was surely not taken is.
    const serving = await servings.serve(doors.directory, {}, (path, nth) =>
      path === "/optim_step" && nth === 0 ? status(429, undefined, soon) : undefined,
    )
    await learned(await serving.connect({ rank: 4, capabilities: twice }))
  })

  it("may have no result: gone, failed, or never there", async () => {
    const answers: readonly (readonly [Fault, string, RegExp])[] = [
      [status(410), "ENGINE_LOST", /lost/],
      [status(404), "ENGINE_REJECTED", /404/],
      [status(400, { detail: "bad" }), "ENGINE_REJECTED", /bad/],
      [status(200, { error: "no gradient", category: "user" }), "ENGINE_REJECTED", /no gradient/],
      [status(200, { type: "try_again", queue_state: "paused_capacity" }), "ENGINE_LOST", /within 0.3 s/],
    ]
    for (const [fault, code, message] of answers) {
      const serving = await servings.serve(doors.directory, {}, (path, nth) =>
        path === "/retrieve_future" && nth > 0 ? fault : undefined,
      )
      const engine = await serving.connect({ rank: 4, capabilities, resultTimeout: 0.3 })
      await expect(engine.forwardBackward(rows, { kind: "cross-entropy" })).rejects.toMatchObject({
        code,
        message: expect.stringMatching(message),
      })
    }
  })

  it("is seen while it waits", async () => {
    const serving = await servings.serve(doors.directory, {}, (path, nth) =>
      path === "/retrieve_future" && nth > 0 && nth < 5
        ? status(200, { type: "try_again", queue_state: "paused_capacity", queue_state_reason: "busy" })
        : undefined,
    )
    const engine = await serving.connect({ rank: 4, capabilities })
    const done = engine.forwardBackward(rows, { kind: "cross-entropy" })
    await expect
      .poll(() => engine.pending)
      .toEqual([expect.objectContaining({ path: "/forward_backward", state: "paused_capacity", reason: "busy" })])
    await done
    expect(engine.pending).toEqual([])
  })
})

it("a clock that jumps ends nothing, on neither side", async () => {
  const plain = await (await servings.serve(doors.directory)).connect({ rank: 4, capabilities })
  const expected = await learned(plain)
  vi.useFakeTimers({ toFake: ["Date"] })
  try {
    const serving = await servings.serve(doors.directory, { silence: 5 }, (path, nth) => {
      if (path !== "/retrieve_future" || nth > 3) return undefined
      vi.setSystemTime(nth % 2 === 0 ? "2036-01-01" : "1999-01-01")
      return status(200, { type: "try_again", queue_state: "active" })
    })
    const engine = await serving.connect({ rank: 4, capabilities, resultTimeout: 60 })
    expect(await learned(engine)).toEqual(expected)
    vi.setSystemTime("2046-01-01")
    await new Promise((resolve) => setTimeout(resolve, 1500)) // the server has looked whom it has not heard for long
    expect(await learned(engine)).not.toEqual(expected)
  } finally {
    vi.useRealTimers()
  }
})

it("a sample whose result is lost is drawn anew", async () => {
  const serving = await servings.serve(doors.directory, {}, (path, nth) =>
    path === "/retrieve_future" && nth === 2 ? status(410) : undefined,
  )
  const engine = await serving.connect({ rank: 4, capabilities })
  const found = await engine.sample(sample)
  expect(found.tokens.length).toBeGreaterThan(0)
})

it("the key stands in no error, and a wrong one is told", async () => {
  const serving = await servings.serve(doors.directory)
  await expect(serving.connect({ key: "tml-of-somebody-else" })).rejects.toMatchObject({
    code: "ENGINE_REJECTED",
    message: expect.not.stringContaining("somebody"),
  })
})

it("a model that the server does not have is rejected by name", async () => {
  const serving = await servings.serve(doors.directory)
  await expect(serving.connect({ model: "Qwen/Qwen2.5-7B" })).rejects.toThrow(/tiny.*not Qwen/)
})
