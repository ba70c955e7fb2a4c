import { beforeEach, expect, it } from "vitest"
import type { Environment } from "../../src/environment/environment.ts"
import { int64Bytes } from "../../src/tinker/arrays.ts"
import { forwardBackwardRequest, type WireDatum } from "../../src/tinker/messages.ts"
import { doorsEnvironment } from "../rollout/doors.ts"
import { TinyModel } from "../training/tiny.ts"
import { key, type Serving, Servings } from "./serving.ts"
import { bomb, endlessCopies, frame } from "./zstd-frames.ts"

// Few bytes that declare much, sent to `gigpo engine` by a client with a key: rejected with little memory, and all others are answered.

const doors = new TinyModel(doorsEnvironment() as Environment)
const servings = new Servings()
let serving: Serving

const post = async (path: string, body: Uint8Array | string, headers: Record<string, string>) => {
  const response = await fetch(`${serving.url}/api/v1${path}`, {
    method: "POST",
    body: body as string,
    headers: { "x-api-key": key, ...headers },
  })
  await response.arrayBuffer()
  return response.status
}
const json = { "content-type": "application/json" }
const protobuf = { "content-type": "application/x-protobuf" }
const zstd = { ...protobuf, "content-encoding": "zstd" }

const sparse = (shape: readonly number[]) => ({
  ...{ dense: undefined, dtype: 1, shape },
  sparse: { values: new Uint8Array(4), rowPointers: int64Bytes([0, 1]), columns: int64Bytes([0]) },
})
const call = (data: readonly WireDatum[]) =>
  forwardBackwardRequest.encode({
    ...{ modelId: "m", seqId: 1, loss: "ppo", forwardOnly: false, data },
    ...{ config: new Map(), configValues: new Map() },
  })
const datum = (inputs: number, shape: readonly number[]): WireDatum => ({
  modelInput: [{ text: { tokens: new Uint8Array(8) }, image: undefined, audio: undefined }],
  lossInputs: new Map(Array.from({ length: inputs }, (_, i) => [`input${i}`, sparse(shape)])),
})
const pairs = (bytes: number) => new Uint8Array(bytes).map((_, i) => (i % 2 === 0 ? 0x1a : 0))
const asked = (body: object) => JSON.stringify({ forward_backward_input: body, model_id: "m", seq_id: 1 })

beforeEach(async () => {
  serving = await servings.serve(doors.directory)
})

it.each<[string, string, () => Uint8Array | string, Record<string, string>, number]>([
  ["64 MiB of empty data in 7 KB", "/forward_backward", () => bomb(64), zstd, 413],
  ["8 MiB of empty data in 1 KB", "/forward_backward", () => bomb(8), zstd, 422],
  ["16 MiB of empty data", "/forward_backward", () => pairs(2 ** 24), protobuf, 422],
  ["sequences without end in 19 bytes", "/forward_backward", () => endlessCopies, zstd, 400],
  [
    "2 GiB of zeros",
    "/forward_backward",
    () => frame(Array(16_384).fill({ kind: "rle", bytes: [0], size: 131_072 })),
    zstd,
    413,
  ],
  ["a tensor of two thousand million rows", "/forward_backward", () => call([datum(1, [2e9, 1])]), protobuf, 422],
  ["40 tensors of 500 million rows", "/forward_backward", () => call([datum(40, [5e8, 1])]), protobuf, 422],
  ["a tensor of 2^53 rows", "/forward_backward", () => call([datum(1, [2 ** 53, 1])]), protobuf, 422],
  ["a tensor of -1 rows", "/forward_backward", () => call([datum(1, [-1, 1])]), protobuf, 422],
  [
    "a million data in JSON",
    "/forward_backward",
    () => asked({ data: Array(2 ** 20).fill(0), loss_fn: "ppo" }),
    json,
    422,
  ],
  [
    "a config of letters",
    "/forward_backward",
    () => asked({ data: [], loss_fn: "ppo", loss_fn_config: "x".repeat(4e6) }),
    json,
    422,
  ],
  [
    "names by the hundred thousand",
    "/forward_backward",
    () => asked(Object.fromEntries(Array.from({ length: 3e5 }, (_, i) => [`k${i}`, 1]))),
    json,
    400,
  ],
  ["lists in lists", "/forward_backward", () => "[".repeat(1e6), json, 400],
  ["settings in letters", "/optim_step", () => JSON.stringify({ adam_params: "x".repeat(5e5) }), json, 400],
])("rejects %s", async (_, path, body, headers, status) => {
  const bytes = body()
  const before = process.memoryUsage.rss()
  let [answered, slowest, largest] = [false, 0, 0]
  const refused = post(path, bytes, headers).finally(() => {
    answered = true
  })
  do {
    const began = performance.now()
    expect((await fetch(`${serving.url}/api/v1/healthz`)).status).toBe(200)
    slowest = Math.max(slowest, performance.now() - began)
    largest = Math.max(largest, process.memoryUsage.rss() - before)
  } while (!answered)
  expect(await refused).toBe(status)
  // Generous: without limits it was ten seconds to two minutes, and gigabytes.
  expect(slowest).toBeLessThan(3000)
  expect(largest).toBeLessThan(400e6)
})
