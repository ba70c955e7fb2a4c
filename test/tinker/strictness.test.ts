import { request } from "node:http"
import { beforeEach, expect, it } from "vitest"
import type { Environment } from "../../src/environment/environment.ts"
import { doorsEnvironment } from "../rollout/doors.ts"
import { TinyModel } from "../training/tiny.ts"
import { key, type Serving, Servings } from "./serving.ts"

// `gigpo engine` against clients that are wrong, or not to be trusted.

const doors = new TinyModel(doorsEnvironment() as Environment)
const servings = new Servings()
let serving: Serving
let ids: { session_id: string; model_id: string; sampling_session_id: string }

async function ask(path: string, body?: unknown, headers: Record<string, string> = { "x-api-key": key }) {
  const raw = body instanceof Uint8Array || typeof body === "string"
  const response = await fetch(`${serving.url}/api/v1${path}`, {
    ...(body !== undefined && { method: "POST", body: raw ? (body as string) : JSON.stringify(body) }),
    headers: { "content-type": "application/json", ...headers },
  })
  return { status: response.status, body: (await response.json()) as Record<string, string> }
}

beforeEach(async () => {
  serving = await servings.serve(doors.directory, { models: 1 })
  const { session_id } = (await ask("/create_session", {})).body as { session_id: string }
  const made = await ask("/create_model", { session_id, base_model: "tiny", model_seq_id: 0, lora_config: { rank: 2 } })
  await ask("/retrieve_future", { request_id: made.body.request_id })
  const sampling = await ask("/create_sampling_session", {
    ...{ session_id, base_model: "tiny", sampling_session_seq_id: 0 },
  })
  const { sampling_session_id } = sampling.body as { sampling_session_id: string }
  ids = { session_id, model_id: made.body.model_id!, sampling_session_id }
})

const chunk = (tokens: readonly unknown[]) => ({ chunks: [{ type: "encoded_text", tokens }] })
const tensor = (data: readonly unknown[], dtype = "float32") => ({ data, dtype, shape: [data.length] })
const batch = (changes: object = {}, loss_fn = "cross_entropy") => ({
  model_id: ids.model_id,
  seq_id: 1,
  forward_backward_input: {
    data: [
      {
        model_input: chunk([5, 6]),
        loss_fn_inputs: { target_tokens: tensor([6, 7], "int64"), weights: tensor([1, 1]), ...changes },
      },
    ],
    loss_fn,
  },
})
const sample = (changes: object = {}, params: object = {}) => ({
  ...{ sampling_session_id: ids.sampling_session_id, seq_id: 1, num_samples: 1, prompt: chunk([5, 6]) },
  ...{ sampling_params: { max_tokens: 2, ...params }, ...changes },
})
const step = (adam_params: unknown) => ({ model_id: ids.model_id, seq_id: 1, adam_params })

const names = (count: number) =>
  JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 1])))

it("answers nobody without its key, and only by its own names", async () => {
  for (const headers of [{}, { "x-api-key": `${key}x` }, { authorization: "Bearer nobody" }, { "x-api-key": "" }])
    for (const path of ["/create_session", "/retrieve_future", "/asample", "/gigpo/clear_gradients"])
      expect(await ask(path, {}, headers as Record<string, string>)).toMatchObject({ status: 401 })
  expect(await ask("/training_runs", undefined, {})).toMatchObject({ status: 401 })
  expect(await ask("/healthz", undefined, {})).toMatchObject({ status: 200 })
  expect(await ask("/client/config", {}, { authorization: `Bearer ${key}` })).toMatchObject({ status: 200 })
  const { port } = new URL(serving.url)
  const status = await new Promise((resolve, reject) => {
    const headers = { host: "elsewhere.example", "x-api-key": key }
    request({ host: "127.0.0.1", port, path: "/api/v1/training_runs", headers }, (response) => {
      response.resume()
      resolve(response.statusCode)
    })
      .on("error", reject)
      .end()
  })
  expect(status).toBeGreaterThanOrEqual(400)
})

it.each<[string, () => [string, unknown], number, RegExp]>([
  ["no JSON", () => ["/optim_step", "{"], 400, /JSON/],
  ["a list", () => ["/optim_step", []], 400, /object|model_id/],
  ["a path that there is not", () => ["/train", {}], 404, /not supported by this server/],
  [
    "a model that there is not",
    () => ["/optim_step", { ...step({}), model_id: "none" }],
    404,
    /model none does not exist/,
  ],
  ["a model_id that is no text", () => ["/optim_step", { ...step({}), model_id: 3 }], 400, /model_id/],
  ["a number of no request", () => ["/optim_step", { ...step({}), seq_id: -1 }], 400, /seq_id/],
  ["a rate below 0", () => ["/optim_step", step({ learning_rate: -1 })], 400, /learning_rate/],
  ["a rate that is a text", () => ["/optim_step", step({ learning_rate: "1e-4" })], 400, /learning_rate/],
  ["another optimizer", () => ["/optim_step", step({ type: "sgd" })], 422, /sgd/],
  [
    "another model's name",
    () => ["/create_model", { ...ids, base_model: "Qwen/Qwen3-8B" }],
    400,
    /this engine has tiny/,
  ],
  [
    "a session that there is not",
    () => ["/create_model", { session_id: "x", base_model: "tiny" }],
    404,
    /session x does not exist/,
  ],
  [
    "a rank of a half",
    () => ["/create_model", { ...ids, base_model: "tiny", lora_config: { rank: 0.5 } }],
    400,
    /rank/,
  ],
  [
    "one model too many",
    () => ["/create_model", { ...ids, base_model: "tiny", model_seq_id: 1, lora_config: { rank: 2 } }],
    400,
    /unload another/,
  ],
  [
    "no data",
    () => ["/forward_backward", { ...batch(), forward_backward_input: { data: [], loss_fn: "ppo" } }],
    400,
    /data/,
  ],
  ["a loss that every object has", () => ["/forward_backward", batch({}, "constructor")], 422, /constructor/],
  ["a loss named by a prototype", () => ["/forward_backward", batch({}, "__proto__")], 422, /__proto__/],
  ["a loss of half a character", () => ["/forward_backward", batch({}, "\ud800")], 422, /loss .* is not supported/],
  [
    "an input named by a prototype",
    () => ["/forward_backward", batch(JSON.parse('{"__proto__": {"data": [1, 1], "dtype": "float32", "shape": [2]}}'))],
    422,
    /__proto__/,
  ],
  ["a loss of a long name", () => ["/forward_backward", batch({}, "x".repeat(100_000))], 422, /^.{0,600}$/],
  ["a number of a call beyond 2^31", () => ["/forward_backward", { ...batch(), seq_id: 2 ** 40 }], 422, /seq_id/],
  ["an optimizer in letters", () => ["/optim_step", step("x".repeat(10_000))], 400, /adam_params/],
  ["a body of names alone", () => ["/optim_step", names(50_000)], 400, /strings/],
  ["a body of values alone", () => ["/optim_step", `{"model_id": [${"1,".repeat(300_000)}1]}`], 400, /values/],
  ["a body that is too large", () => ["/optim_step", { ...step({}), more: "x".repeat(2 ** 21) }], 413, /bytes/],
  ["a loss that there is not", () => ["/forward_backward", batch({}, "gspo")], 422, /gspo/],
  [
    "targets beside nothing",
    () => ["/forward_backward", batch({ target_tokens: tensor([6], "int64") })],
    422,
    /target/,
  ],
  ["targets of fractions", () => ["/forward_backward", batch({ target_tokens: tensor([6.5, 7]) })], 400, /target/],
  [
    "tokens beyond the vocabulary",
    () => ["/forward_backward", batch({ target_tokens: tensor([6, 9e6], "int64") })],
    400,
    /token/,
  ],
  ["weights beside nothing", () => ["/forward_backward", batch({ weights: tensor([1]) })], 422, /weights/],
  ["weights of no number", () => ["/forward_backward", batch({ weights: tensor([1, null]) })], 422, /weights|number/],
  ["a prompt of nothing", () => ["/asample", sample({ prompt: chunk([]) })], 400, /prompt/],
  ["a prompt that is too long", () => ["/asample", sample({ prompt: chunk(Array(5000).fill(5)) })], 400, /prompt|long/],
  ["images", () => ["/asample", sample({ prompt: { chunks: [{ type: "image" }] } })], 400, /prompt/],
  ["a temperature below 0", () => ["/asample", sample({}, { temperature: -1 })], 400, /temperature/],
  ["a nucleus", () => ["/asample", sample({}, { top_p: 0.9 })], 400, /top_p/],
  ["texts that stop", () => ["/asample", sample({}, { stop: ["\n"] })], 400, /stop/],
  ["no samples", () => ["/asample", sample({ num_samples: 0 })], 400, /num_samples/],
  [
    "a sampler that there is not",
    () => ["/asample", sample({ sampling_session_id: "x" })],
    404,
    /sampling session x does not exist/,
  ],
  [
    "a name that leads out",
    () => ["/save_weights", { model_id: ids.model_id, seq_id: 1, path: "../../out" }],
    400,
    /path|name/,
  ],
  [
    "weights that lead out",
    () => ["/load_weights", { ...ids, seq_id: 1, path: "tinker://../../etc/passwd" }],
    400,
    /path|tinker/,
  ],
  [
    "weights that there are not",
    () => ["/load_weights", { ...ids, seq_id: 1, path: `tinker://${ids.model_id}/weights/none` }],
    404,
    /none/,
  ],
  ["a promise that was not given", () => ["/retrieve_future", { request_id: "none" }], 404, /none/],
])("rejects %s, and answers the next request", async (_, asked, status, message) => {
  const told = await ask(...asked())
  expect([told.status, JSON.stringify(told.body)]).toEqual([status, expect.stringMatching(message)])
  expect(JSON.stringify(told.body)).not.toContain(doors.directory)
  // What it was asked for is not half done: the next request with that number is taken.
  const next = await ask("/forward_backward", batch())
  expect(next.status).toBe(200)
  const { body: result } = await ask("/retrieve_future", { request_id: next.body.request_id })
  expect(result).toHaveProperty("loss_fn_outputs")
})

it("says by the result that a prompt is beyond the vocabulary", async () => {
  const { body } = await ask("/asample", sample({ prompt: chunk([5, 9e6]) }))
  const { body: result } = await ask("/retrieve_future", { request_id: body.request_id })
  expect(result).toMatchObject({ error: expect.stringMatching(/token/), category: "user" })
})

it("forgets what a session had when it is over", async () => {
  expect((await ask("/asample", sample())).status).toBe(200)
  await ask(`/sessions/${ids.session_id}/finish`, {})
  expect(await ask("/asample", sample())).toMatchObject({ status: 404 })
  expect(await ask("/optim_step", step({}))).toMatchObject({ status: 404 })
})

it("reads no more than a request may hold", async () => {
  const { status } = await ask("/forward_backward", new Uint8Array(2 ** 27))
  expect(status).toBe(413)
  const garbage = new Uint8Array(64).fill(0xff)
  for (const type of ["application/x-protobuf", "application/octet-stream"]) {
    const told = await ask("/forward_backward", garbage, { "x-api-key": key, "content-type": type })
    expect(told.status).toBeGreaterThanOrEqual(400)
    expect(told.status).toBeLessThan(500)
  }
  const packed = await ask("/forward_backward", garbage, { "x-api-key": key, "content-encoding": "zstd" })
  expect(packed.status).toBe(400)
})
