import { describe, expect, it } from "vitest"
import { dtypes, int64Bytes } from "../../src/tinker/arrays.ts"
import { datumFromJson, datumFromWire, promptFromJson } from "../../src/tinker/datum.ts"
import { mostChunks, mostData, mostInputs, mostTokens } from "../../src/tinker/limits.ts"
import {
  forwardBackwardOutput,
  forwardBackwardRequest,
  sampleResponse,
  type WireTensor,
} from "../../src/tinker/messages.ts"
import { callFromJson, decodeCall } from "../../src/tinker/training-call.ts"
import { atOnce } from "../../src/util/pace.ts"

// Messages that declare more than they hold, or hold more than any client sends.

const bad = expect.objectContaining({ code: "BAD_ARGUMENT" })
const varint = (value: number | bigint): number[] => {
  const bytes: number[] = []
  for (let rest = BigInt.asUintN(64, BigInt(value)); ; rest >>= 7n) {
    bytes.push(Number(rest & 0x7fn) | (rest > 0x7fn ? 0x80 : 0))
    if (rest <= 0x7fn) return bytes
  }
}
const field = (tag: number, bytes: readonly number[]) => [...varint((tag << 3) | 2), ...varint(bytes.length), ...bytes]
const repeated = (bytes: readonly number[], count: number) => {
  const whole = new Uint8Array(bytes.length * count)
  for (let i = 0; i < count; i++) whole.set(bytes, i * bytes.length)
  return whole
}

/** Puts bytes into a part of a message: the tags that lead there. */
const within = (path: readonly number[], bytes: Uint8Array): Uint8Array =>
  path.reduceRight((inner, tag) => {
    const head = [...varint((tag << 3) | 2), ...varint(inner.length)]
    const whole = new Uint8Array(head.length + inner.length)
    whole.set(head)
    whole.set(inner, head.length)
    return whole
  }, bytes)

const messages = { forwardBackwardRequest, forwardBackwardOutput, sampleResponse }
/** Every repeated field of every message. */
const lists: readonly (readonly [keyof typeof messages, string, readonly number[], number])[] = [
  ["forwardBackwardRequest", "data", [], 3],
  ["forwardBackwardRequest", "chunks", [3], 1],
  ["forwardBackwardRequest", "inputs of a loss", [3], 2],
  ["forwardBackwardRequest", "shape", [3, 2, 2], 4],
  ["forwardBackwardRequest", "config", [], 5],
  ["forwardBackwardRequest", "config of values", [], 7],
  ["forwardBackwardOutput", "outputs", [], 2],
  ["forwardBackwardOutput", "columns", [2], 2],
  ["forwardBackwardOutput", "trailing shape", [2, 2, 2], 4],
  ["forwardBackwardOutput", "metrics", [], 3],
  ["sampleResponse", "sequences", [], 1],
]

describe.each(lists)("%s: %s", (message, _, path, tag) => {
  const decode = (bytes: Uint8Array) => messages[message].decode(bytes)
  const entry = (i: number) =>
    field(
      tag,
      field(
        1,
        [...`k${i}`].map((letter) => letter.charCodeAt(0)),
      ),
    )

  it("are rejected where they are more than a client sends, whatever they hold", () => {
    const count = 2 ** 20
    expect(() => decode(within(path, repeated([...varint((tag << 3) | 2), 0], count)))).toThrow(bad)
    expect(() => decode(within(path, repeated([...varint(tag << 3), 1], count)))).toThrow(bad)
    const distinct = Uint8Array.from(Array.from({ length: 5000 }, (_, i) => entry(i)).flat())
    expect(() => decode(within(path, distinct))).toThrow(bad)
    // One list, packed.
    expect(() => decode(within([...path, tag], repeated([1], count)))).toThrow(bad)
  })

  it("are rejected where a length leads out, is negative or beyond 2^53", () => {
    for (const length of [2, 2n ** 31n, 2n ** 32n + 1n, 2n ** 53n + 1n, 2n ** 63n, -1n, -(2n ** 31n)])
      expect(() => decode(within(path, Uint8Array.of(...varint((tag << 3) | 2), ...varint(length), 0)))).toThrow(bad)
    const endless = new Uint8Array(64).fill(0xff)
    expect(() => decode(within(path, Uint8Array.of(...varint((tag << 3) | 2), ...endless)))).toThrow(bad)
  })

  it("are rejected as groups, in numbers of other widths, and nested in themselves", () => {
    for (const wire of [1, 3, 4, 5, 6, 7])
      expect(() => decode(within(path, Uint8Array.of(...varint((tag << 3) | wire), ...new Uint8Array(8))))).toThrow(bad)
    const deep = within(Array(20_000).fill(tag), new Uint8Array())
    try {
      decode(within(path, deep))
    } catch (error) {
      expect(error).toEqual(bad)
    }
  })
})

it("fields of later versions are counted too", () => {
  const later = repeated([0x78, 0x01], 2 ** 21)
  for (const [name, message] of Object.entries(messages)) {
    expect(() => message.decode(later)).toThrow(/fields/)
    const part = name === "forwardBackwardRequest" ? 3 : name === "forwardBackwardOutput" ? 2 : 1
    expect(() => message.decode(within([part], later))).toThrow(/fields/)
    expect(() => message.decode(Uint8Array.of(0x78, ...new Uint8Array(20).fill(0xff)))).toThrow(bad)
  }
})

it("texts are names: short, and UTF-8", () => {
  expect(() => forwardBackwardRequest.decode(within([1], new Uint8Array(5000)))).toThrow(/string/)
  expect(() => forwardBackwardRequest.decode(Uint8Array.from(field(1, [0xff, 0xfe])))).toThrow(bad)
  expect(() => forwardBackwardRequest.decode(Uint8Array.from(field(4, [0xed, 0xa0, 0x80])))).toThrow(bad)
})

describe("tensors", () => {
  const chunk = (tokens: number) => ({
    text: { tokens: new Uint8Array(4 * tokens) },
    image: undefined,
    audio: undefined,
  })
  const of = (tensor: Partial<WireTensor>, tokens = 2) => {
    const whole = { dense: undefined, sparse: undefined, dtype: dtypes.float32, shape: [], ...tensor }
    return () => datumFromWire({ modelInput: [chunk(tokens)], lossInputs: new Map([["weights", whole]]) })
  }
  const sparse = (pointers: readonly number[], values: number) => ({
    values: new Uint8Array(4 * values),
    rowPointers: int64Bytes(pointers),
    columns: int64Bytes(Array(values).fill(0)),
  })

  it("are as long as the tokens, whatever their shape declares", () => {
    expect(of({ sparse: sparse([0, 1, 1], 1), shape: [2, 1] })().inputs.get("weights")).toEqual(Float32Array.of(0, 0))
    for (const shape of [[2e9, 1], [-1, 1], [2 ** 53, 1], [2, 2], [2, 1, 2e9], [0], [], [2 ** 26, 2 ** 26]])
      for (const tensor of [{ sparse: sparse([0, 1, 1], 1) }, { dense: new Uint8Array(8) }])
        if (shape.length > 0 || "sparse" in tensor) expect(of({ ...tensor, shape }), `${shape}`).toThrow(bad)
    expect(of({ dense: new Uint8Array(2 ** 20) })).toThrow(/weights has 262144 values/)
    expect(of({ dtype: 99, dense: new Uint8Array(8) })).toThrow(bad)
  })

  it("that are compressed have rows of at most one value, in order", () => {
    for (const [pointers, values] of [
      [[0, 1], 1],
      [[0, 1, 1, 1], 1],
      [[0, 2, 2], 2],
      [[0, -1, 0], 0],
      [[1, 1, 1], 1],
      [[0, 1, 0], 0],
      [[0, 1, 5], 2],
      [[0, 1, 2], 1],
      [[0, 1, 2], 3],
    ] as const)
      expect(of({ sparse: sparse(pointers, values), shape: [2, 1] }), `${pointers}`).toThrow(bad)
  })
})

describe("calls", () => {
  const json = (data: unknown, more: object = {}) => {
    const body = { model_id: "m", seq_id: 1, forward_backward_input: { data, loss_fn: "ppo", ...more } }
    return () => atOnce(callFromJson(body, false, 100))
  }
  const datum = { model_input: { chunks: [{ tokens: [1, 2] }] }, loss_fn_inputs: {} }

  it("in JSON are bounded as protocol buffers are", () => {
    expect(json([datum])().data).toHaveLength(1)
    expect(json(Array(mostData + 1).fill(datum))).toThrow(bad)
    expect(json([{ ...datum, model_input: { chunks: Array(mostChunks + 1).fill({ tokens: [] }) } }])).toThrow(bad)
    expect(json([{ ...datum, model_input: { chunks: [{ tokens: Array(101).fill(1) }] } }])).toThrow(/100/)
    const names = Array.from({ length: mostInputs + 1 }, (_, i) => [`n${i}`, { data: [1, 2] }])
    expect(json([{ ...datum, loss_fn_inputs: Object.fromEntries(names) }])).toThrow(bad)
    // Texts have entries as objects do: one for each letter.
    expect(json([{ ...datum, loss_fn_inputs: "x".repeat(100) }])).toThrow(bad)
    expect(json([datum], { loss_fn_config: "x".repeat(100) })).toThrow(bad)
    expect(json([datum], { loss_fn_config: Array(100).fill(1) })).toThrow(bad)
  })

  it("hold so many tokens together", () => {
    const tokens = new Uint8Array(4 * 2 ** 16)
    const data = Array.from({ length: 17 }, () => ({
      modelInput: [{ text: { tokens }, image: undefined, audio: undefined }],
      lossInputs: new Map(),
    }))
    const call = { modelId: "m", seqId: 1, loss: "ppo", config: new Map(), configValues: new Map(), forwardOnly: false }
    const encoded = forwardBackwardRequest.encode({ ...call, data })
    expect(() => atOnce(decodeCall(encoded))).toThrow(String(mostTokens))
    expect(() => atOnce(decodeCall(encoded, 1000))).toThrow("1000")
  })

  it("have whole numbers", () => {
    const encoded = (seqId: number | bigint) => Uint8Array.of(0x10, ...varint(seqId))
    for (const seqId of [-1, 2 ** 31, 2n ** 53n + 1n, 2n ** 63n])
      expect(() => atOnce(decodeCall(encoded(seqId)))).toThrow(/seq_id/)
    const body = { model_id: "m", forward_backward_input: { data: [datum], loss_fn: "ppo" } }
    for (const seq_id of [-1, 0.5, Number.NaN, 2 ** 53])
      expect(() => atOnce(callFromJson({ ...body, seq_id }, false))).toThrow(/seq_id/)
  })

  it("quote no more of a text than it takes to know it", () => {
    const long = "x".repeat(10_000)
    const given = { ...datum, loss_fn_inputs: { [long]: { data: [1], dtype: "float32" } } }
    let told = ""
    try {
      datumFromJson(given)
    } catch (error) {
      told = (error as Error).message
    }
    expect(told).toContain("xxx")
    expect(told.length).toBeLessThan(500)
    expect(() => promptFromJson({ chunks: [{ type: { a: long } }] })).toThrow(/^.{0,500}$/)
  })
})
