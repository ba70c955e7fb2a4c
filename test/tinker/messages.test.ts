import { describe, expect, it } from "vitest"
import { bytesOf, dtypes, int64Bytes, readFloat32, readInt32, readInt64, readValues } from "../../src/tinker/arrays.ts"
import {
  type ForwardBackwardOutput,
  type ForwardBackwardRequest,
  forwardBackwardOutput,
  forwardBackwardRequest,
  type SampleResponse,
  sampleResponse,
} from "../../src/tinker/messages.ts"
import { exchanges, reason, there } from "./recorded.ts"

const empty = {
  loss: "",
  config: new Map(),
  configValues: new Map(),
  forwardOnly: false,
  data: [],
  modelId: "",
  seqId: 0,
}
const bad = expect.objectContaining({ code: "BAD_ARGUMENT" })

describe("messages", () => {
  const request: ForwardBackwardRequest = {
    modelId: "session:train:0",
    seqId: 7,
    loss: "ppo",
    config: new Map([["clip_low_threshold", 0.8]]),
    configValues: new Map([["loss_id", { number: undefined, text: "mine" }]]),
    forwardOnly: true,
    data: [
      {
        modelInput: [{ text: { tokens: bytesOf(Int32Array.of(1, -2, 300000)) }, image: undefined, audio: undefined }],
        lossInputs: new Map([
          [
            "advantages",
            { dense: bytesOf(Float32Array.of(0.5, -1, 0)), sparse: undefined, dtype: dtypes.float32, shape: [3] },
          ],
        ]),
      },
    ],
  }

  it("are read as they were written", () => {
    expect(forwardBackwardRequest.decode(forwardBackwardRequest.encode(request))).toEqual(request)
    expect(forwardBackwardRequest.decode(new Uint8Array())).toEqual(empty)
    expect(forwardBackwardRequest.encode(empty)).toHaveLength(0)
  })

  it("pass over fields of later versions", () => {
    // Field 15 a varint, field 16 of two bytes, field 17 of eight.
    const later = Uint8Array.of(0x78, 0x96, 0x01, 0x82, 0x01, 0x02, 0xff, 0xff, 0x89, 0x01, 1, 2, 3, 4, 5, 6, 7, 8)
    const bytes = Uint8Array.of(...later, ...forwardBackwardRequest.encode(request), ...later)
    const read = forwardBackwardRequest.decode(bytes)
    expect(read).toEqual(request)
  })

  it("that are cut off, or of other types, are rejected or are another message, and never end the process", () => {
    const whole = forwardBackwardRequest.encode(request)
    let refused = 0
    for (let length = 1; length < whole.length; length++)
      try {
        forwardBackwardRequest.decode(whole.subarray(0, length))
      } catch (error) {
        expect(error).toEqual(bad)
        refused++
      }
    expect(refused).toBeGreaterThan(whole.length / 2)
    for (let at = 0; at < whole.length; at++)
      for (const value of [0, 1, 0x7f, 0x80, 0xff]) {
        const changed = whole.slice()
        changed[at] = value
        try {
          forwardBackwardRequest.decode(changed)
        } catch (error) {
          expect(error).toEqual(bad)
        }
      }
    // A model's name as a varint.
    expect(() => forwardBackwardRequest.decode(Uint8Array.of(0x08, 0x01))).toThrow(bad)
  })
})

describe("arrays", () => {
  it("are read by their type, whatever they are aligned to", () => {
    const aside = (bytes: Uint8Array) => new Uint8Array([9, ...bytes]).subarray(1)
    expect(readValues(aside(bytesOf(Float32Array.of(0.1, -3))), dtypes.float32)).toEqual(Float32Array.of(0.1, -3))
    expect(readValues(aside(bytesOf(Int32Array.of(5, -6))), dtypes.int32)).toEqual(Int32Array.of(5, -6))
    expect(readValues(aside(int64Bytes([2 ** 31 - 1, -1, -(2 ** 31)])), dtypes.int64)).toEqual(
      Int32Array.of(2 ** 31 - 1, -1, -(2 ** 31)),
    )
    expect(readValues(Uint8Array.of(0x80, 0x3f, 0x00, 0xc0), dtypes.bfloat16)).toEqual(Float32Array.of(1, -2))
  })

  it("that have no meaning are rejected", () => {
    expect(() => readValues(new Uint8Array(5), dtypes.float32)).toThrow(bad)
    expect(() => readValues(new Uint8Array(8), 9)).toThrow(bad)
    expect(() => readValues(Uint8Array.of(0, 0, 0, 0, 1, 0, 0, 0), dtypes.int64)).toThrow(/32 bits/)
  })
})

// Empty values are left out in the recordings, as on the wire.
const tidy = (value: object): unknown =>
  Object.fromEntries(
    Object.entries(value).filter(([, one]) => {
      if (Array.isArray(one)) return one.length > 0
      return one !== undefined && one !== 0 && one !== "" && one !== false && JSON.stringify(one) !== "{}"
    }),
  )
const f4 = (bytes: Uint8Array | undefined) => bytes && { "<f4": Array.from(readFloat32(bytes), rounded) }
const i4 = (bytes: Uint8Array) => ({ "<i4": Array.from(readInt32(bytes)) })
const i8 = (bytes: Uint8Array) => ({ "<i8": Array.from(readInt64(bytes)) })
const base64 = (bytes: Uint8Array) => ({ base64: Buffer.from(bytes).toString("base64") })
const rounded = (value: number) => Number(value.toFixed(6))
const objectOf = <T>(map: ReadonlyMap<string, T>, of: (value: T) => unknown) =>
  Object.fromEntries(Array.from(map, ([key, value]) => [key, of(value)]))
type Top = NonNullable<SampleResponse["promptTop"]>
const topOf = (top: Top | undefined) =>
  top && tidy({ token_ids: i4(top.tokens), logprobs: f4(top.logProbs), k: top.count, length: top.length })

const told = {
  request: ({ data, loss, modelId, seqId, forwardOnly, config, configValues }: ForwardBackwardRequest) =>
    tidy({
      model_id: modelId,
      seq_id: seqId,
      loss_fn: loss,
      forward_only: forwardOnly,
      loss_fn_config: objectOf(config, (value) => value),
      loss_fn_config_v2: objectOf(configValues, (value) => value),
      data: data.map(({ modelInput, lossInputs }) => ({
        model_input: modelInput.map(({ text }) => ({ encoded_text: { tokens: i4(text!.tokens) } })),
        loss_fn_inputs: objectOf(lossInputs, ({ dense, sparse, dtype, shape }) =>
          tidy({
            dense: dense && (dtype === dtypes.int64 ? i8(dense) : f4(dense)),
            sparse_csr: sparse && {
              values: base64(sparse.values),
              crow_indices: i8(sparse.rowPointers),
              col_indices: i8(sparse.columns),
            },
            dtype,
            shape,
          }),
        ),
      })),
    }),
  output: ({ type, outputs, metrics }: ForwardBackwardOutput) =>
    tidy({
      loss_fn_output_type: type,
      loss_fn_outputs: outputs.map(({ type, fields, count }) =>
        tidy({
          type_tag: type,
          num_datums: count,
          fields: objectOf(fields, ({ data, offsets, dtype, trailingShape }) =>
            tidy({ data: f4(data), offsets: i8(offsets), dtype, trailing_shape: trailingShape }),
          ),
        }),
      ),
      metrics: objectOf(metrics, (value) => value),
    }),
  sample: ({ sequences, promptLogProbs, promptTop, cachedTokens }: SampleResponse) =>
    tidy({
      sequences: sequences.map(({ stopReason, tokens, logProbs, top }) => ({
        ...(tidy({ logprobs: f4(logProbs), topk_sampled_logprobs: topOf(top) }) as object),
        tokens: i4(tokens),
        stop_reason: stopReason,
      })),
      prompt_logprobs: f4(promptLogProbs),
      topk_prompt_logprobs: topOf(promptTop),
      prompt_cache_hit_tokens: cachedTokens,
    }),
}

describe(`recorded messages${reason}`, () => {
  const both = exchanges.flatMap(({ n, path, request, response }) => [
    { n, body: request, kind: path.endsWith("/forward_backward") ? ("request" as const) : undefined },
    { n, body: response, kind: response.body_proto?.sequences ? ("sample" as const) : ("output" as const) },
  ])
  // Compressed ones are read where the server decompresses.
  const recorded = both.filter(({ body }) => body.body_base64 && !body.headers?.["content-encoding"])

  it.skipIf(!there)("say what they said, and are written to the byte", () => {
    expect(recorded.length).toBeGreaterThan(50)
    for (const { n, body, kind } of recorded) {
      const bytes = Buffer.from(body.body_base64!, "base64")
      const said = (value: unknown) => JSON.parse(JSON.stringify(value))
      const check = <T extends object>(
        message: { decode(bytes: Uint8Array): T; encode(message: T): Uint8Array },
        tell: (message: T) => unknown,
      ) => {
        const read = message.decode(bytes)
        expect(said(tell(read)), `exchange ${n}`).toEqual(body.body_proto)
        expect(Buffer.from(message.encode(read)).equals(bytes), `exchange ${n}`).toBe(true)
      }
      if (kind === "request") check(forwardBackwardRequest, told.request)
      else if (kind === "sample") check(sampleResponse, told.sample)
      else check(forwardBackwardOutput, told.output)
    }
  })
})
