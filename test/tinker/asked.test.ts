import { expect, it } from "vitest"
import { FieldReader } from "../../src/chat/fields.ts"
import { readAdam, readDraw } from "../../src/engine-server/read-asked.ts"
import { mostStops } from "../../src/tinker/limits.ts"

// What requests ask for, before any work is made of it.

const prompt = { chunks: [{ type: "encoded_text", tokens: [5, 6] }] }
const ask = (changes: object = {}, params: object = {}) =>
  readDraw(new FieldReader({ prompt, sampling_params: params, ...changes }), { maxPositions: 8192, stopTokens: [1] })
const refused = (status: number, message: RegExp) =>
  expect.objectContaining({ status, message: expect.stringMatching(message) })

it("token ids that end a sample are few, each once, and 32 bits wide", () => {
  const ids = (count: number) => Array.from({ length: count }, (_, i) => i)
  expect(ask({}, { stop: ids(mostStops) }).stopTokens).toHaveLength(mostStops)
  expect(ask({}, { stop: Array(100_000).fill(7) }).stopTokens).toEqual([7])
  expect(ask({}, { stop: [] }).stopTokens).toEqual([])
  expect(ask().stopTokens).toEqual([1])
  for (const stop of [ids(mostStops + 1), ids(100_000)]) expect(() => ask({}, { stop })).toThrow(refused(400, /64/))
  for (const stop of [[-1], [0.5], ["\n"], "\n", { length: 1e9 }, [2 ** 32 + 5]])
    expect(() => ask({}, { stop })).toThrow(refused(400, /stop/))
})

it("all samples of a request fit into one answer", () => {
  expect(ask({ num_samples: 4096 }, { max_tokens: 2048 })).toMatchObject({ samples: 4096, maxTokens: 2048 })
  expect(ask({ num_samples: 64 })).toMatchObject({ maxTokens: 8190 })
  expect(() => ask({ num_samples: 4096 })).toThrow(refused(400, /max_tokens/))
  expect(() => ask({ num_samples: 4096, topk_sample_logprobs: 20 }, { max_tokens: 1000 })).toThrow(
    refused(400, /response/),
  )
  for (const num_samples of [4097, 1e9, -1, 0.5, "4"])
    expect(() => ask({ num_samples })).toThrow(refused(400, /samples/))
  for (const max_tokens of [0, -1, 1.5, 2 ** 53, "4"])
    expect(() => ask({}, { max_tokens })).toThrow(refused(400, /max_tokens/))
})

it("prompts are no longer than what the model reads", () => {
  const tokens = Array(8193).fill(5)
  expect(() => ask({ prompt: { chunks: [{ tokens }] } })).toThrow(refused(400, /prompt.*8192/))
  const pieces = tokens.map((token) => ({ tokens: [token] }))
  expect(() => ask({ prompt: { chunks: pieces } })).toThrow(refused(400, /chunks/))
  for (const given of [undefined, "x".repeat(1000), [], { chunks: {} }, { chunks: [{ tokens: {} }] }])
    expect(() => ask({ prompt: given })).toThrow(refused(400, /prompt/))
})

it("settings of an optimizer are numbers by known names", () => {
  expect(readAdam({ learning_rate: 1e-3, unknown: "x" })).toMatchObject({ learning_rate: 1e-3, beta1: 0.9 })
  for (const given of ["x".repeat(1000), null, 3]) expect(() => readAdam(given)).toThrow(refused(400, /adam_params/))
  for (const given of [{ beta1: "0.9" }, { eps: Number.NaN }, { learning_rate: {} }, { weight_decay: null }])
    expect(() => readAdam(given)).toThrow(refused(400, /adam_params\./))
  expect(() => readAdam({ type: "x".repeat(10_000) })).toThrow(refused(422, /^.{0,300}$/))
  expect(readAdam(JSON.parse('{"__proto__": {"learning_rate": 5}}')).learning_rate).toBe(1e-4)
})
