import { expect, it } from "vitest"
import { ApiError } from "../../src/chat/api-error.ts"
import { FieldReader } from "../../src/chat/fields.ts"
import { prepare } from "../../src/engine-server/losses.ts"
import { readAdam, readDraw } from "../../src/engine-server/read-asked.ts"
import {
  decodeSample,
  decodeTraining,
  encodeSample,
  encodeTraining,
  sampleFromJson,
  trainingFromJson,
} from "../../src/tinker/results.ts"
import { callFromJson, callToJson, decodeCall, encodeCall, type TrainingCall } from "../../src/tinker/training-call.ts"
import { decompress } from "../../src/tinker/zstd/decompress.ts"
import { GigpoError } from "../../src/util/errors.ts"
import { Random } from "../../src/util/random.ts"
import { bomb, endlessCopies } from "./zstd-frames.ts"

// Messages in both directions, changed at random: each is read, or rejected by a sentence, in work that its bytes bound.

const rounds = Number(process.env.GIGPO_FUZZ_ROUNDS ?? 300)
const seed = Number(process.env.GIGPO_FUZZ_SEED ?? 1)
/** Fields, data and blocks that one of these small inputs may take. */
const mostPieces = 20_000

const call: TrainingCall = {
  ...{ modelId: "s:train:0", seqId: 3, loss: "ppo", forwardOnly: false, config: { clip_low_threshold: 0.8 } },
  data: Array.from({ length: 3 }, () => ({
    tokens: Int32Array.of(5, 6, 7),
    inputs: new Map<string, Int32Array | Float32Array>([
      ["target_tokens", Int32Array.of(6, 7, 8)],
      ["logprobs", Float32Array.of(-1, -2, -3)],
      ["advantages", Float32Array.of(0, 0.5, -1)],
    ]),
  })),
}
const training = { logProbs: [Float32Array.of(-1, -2), Float32Array.of(-3)], metrics: { "loss:sum": 1 } }
const top = { count: 2, tokens: Int32Array.of(1, 2, 3, 4), logProbs: Float32Array.of(-1, -2, -3, -4) }
const sequence = { tokens: Int32Array.of(3, 4), logProbs: Float32Array.of(-1, -2), stopped: true, top }
const sample = { sequences: [sequence, sequence], promptLogProbs: Float32Array.of(Number.NaN, -1) }

function through<T>(pieces: Generator<undefined, T, undefined>): T {
  for (let count = 0; ; count++) {
    const { done, value } = pieces.next()
    if (done) return value
    expect(count).toBeLessThan(mostPieces)
  }
}
const learned = (read: TrainingCall) => through(prepare(read, new Set(), 100))

const binary: Readonly<Record<string, readonly [Uint8Array, (bytes: Uint8Array) => unknown]>> = {
  call: [encodeCall(call), (bytes) => learned(through(decodeCall(bytes, 100)))],
  training: [encodeTraining(training), (bytes) => decodeTraining(bytes, 2)],
  sample: [encodeSample(sample), decodeSample],
  zstd: [bomb(1), (bytes) => through(decompress(bytes, 2 ** 21))],
  copies: [endlessCopies, (bytes) => through(decompress(bytes, 2 ** 21))],
}
const draw = {
  ...{ prompt: { chunks: [{ type: "encoded_text", tokens: [1, 2] }] }, num_samples: 2 },
  sampling_params: { max_tokens: 5, temperature: 1, stop: [1, 2], seed: 3, top_k: -1, top_p: 1 },
}
const json: Readonly<Record<string, readonly [object, (value: never) => unknown]>> = {
  call: [callToJson(call), (value) => learned(through(callFromJson(value, false, 100)))],
  draw: [draw, (value) => readDraw(new FieldReader(value), { maxPositions: 100, stopTokens: [1] })],
  adam: [{ learning_rate: 1, beta1: 0.9, type: "adamw" }, readAdam],
  training: [
    { loss_fn_outputs: [{ logprobs: { data: [-1, -2] } }], metrics: { a: 1 } },
    (value) => trainingFromJson(value, 2),
  ],
  sample: [
    { sequences: [{ tokens: [1], logprobs: [-1], stop_reason: "stop" }], prompt_logprobs: [null, 1] },
    sampleFromJson,
  ],
}

const isSentence = (error: unknown) =>
  (GigpoError.is(error) && error.code === "BAD_ARGUMENT") ||
  (error instanceof ApiError && error.status >= 400 && error.status < 500)

function read(work: () => unknown): void {
  try {
    work()
  } catch (error) {
    if (!isSentence(error)) throw error
    expect((error as Error).message.length).toBeLessThan(1000)
  }
}

const numbers = [0, 1, 2, 4, 8, 0x1a, 0x7f, 0x80, 0xfe, 0xff]
function changed(bytes: Uint8Array, random: Random): Uint8Array {
  const parts = [...bytes]
  for (let i = 0; i <= random.below(6); i++) {
    const at = random.below(parts.length + 1)
    const kind = random.below(5)
    if (kind === 0) parts[Math.min(at, parts.length - 1)] = random.below(256)
    else if (kind === 1) parts.splice(at, 0, numbers[random.below(numbers.length)]!)
    else if (kind === 2) parts.splice(at, random.below(8))
    else if (kind === 3) parts.splice(at, 0, ...parts.slice(at, at + random.below(40)))
    else parts.splice(at, 1, ...Array(random.below(11)).fill(0xff))
  }
  return Uint8Array.from(parts)
}

const odd: readonly unknown[] = [
  ...[null, true, -1, 0.5, 1e308, 2 ** 53, 2 ** 31, "", "__proto__", "constructor", "\ud800", "x".repeat(5000), [], {}],
  ...[
    [[]],
    [null],
    { length: 2 ** 32 - 1 },
    { toString: 1 },
    JSON.parse('{"__proto__": {"loss_fn": "ppo"}}'),
    Array(200).fill(1),
  ],
]
/** A copy in which one value is another. */
function replaced(value: unknown, random: Random): unknown {
  if (typeof value !== "object" || value === null || random.below(5) === 0) return odd[random.below(odd.length)]
  const entries = Object.entries(value)
  if (entries.length === 0) return odd[random.below(odd.length)]
  const [key, inner] = entries[random.below(entries.length)]!
  const other = replaced(inner, random)
  if (Array.isArray(value)) return value.map((one, i) => (String(i) === key ? other : one))
  return random.below(6) === 0
    ? { ...value, [typeof other === "string" ? other : "more"]: inner }
    : { ...value, [key]: other }
}

it.each(Object.keys(binary))("%s, in bytes", (name) => {
  const random = new Random(seed).derive(name)
  const [bytes, work] = binary[name]!
  for (let round = 0; round < rounds; round++) read(() => work(changed(bytes, random.derive(round))))
})

it.each(Object.keys(json))("%s, in JSON", (name) => {
  const random = new Random(seed).derive(`${name} in JSON`)
  const [value, work] = json[name]!
  const plain = JSON.parse(JSON.stringify(value))
  for (let round = 0; round < rounds; round++) {
    const own = random.derive(round)
    const once = replaced(plain, own)
    read(() => work((own.below(2) === 0 ? once : replaced(once, own)) as never))
  }
})
