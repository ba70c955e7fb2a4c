import { describe, expect, it } from "vitest"
import { datumFromJson, datumFromWire, datumToJson, datumToWire } from "../../src/tinker/datum.ts"
import {
  decodeSample,
  decodeTraining,
  encodeSample,
  encodeTraining,
  type ListedJson,
  sampleFromJson,
  sampleParts,
  trainingFromJson,
  trainingParts,
  writtenParts,
} from "../../src/tinker/results.ts"
import { callFromJson, callToJson, decodeCall, encodeCall, type TrainingCall } from "../../src/tinker/training-call.ts"
import { atOnce } from "../../src/util/pace.ts"

const through = (value: unknown): unknown => JSON.parse(JSON.stringify(value))
const written = (parts: ListedJson): unknown => JSON.parse([...writtenParts(parts)].join(""))
const bad = expect.objectContaining({ code: "BAD_ARGUMENT" })

const datum = {
  tokens: Int32Array.of(5, 6, 7),
  inputs: new Map<string, Int32Array | Float32Array>([
    ["target_tokens", Int32Array.of(6, 7, 8)],
    ["advantages", Float32Array.of(0, 0.5, -1)],
  ]),
}
const call: TrainingCall = {
  ...{ modelId: "s:train:0", seqId: 3, data: [datum], loss: "ppo", forwardOnly: false },
  config: { clip_low_threshold: 0.8, loss_id: "mine" },
}

describe("calls", () => {
  it("say the same in either form", () => {
    expect(atOnce(decodeCall(encodeCall(call)))).toEqual(call)
    expect(atOnce(callFromJson(through(callToJson(call)), false))).toEqual(call)
    const forward = { ...call, forwardOnly: true }
    expect(atOnce(callFromJson(through(callToJson(forward)), true))).toEqual(forward)
    expect(atOnce(decodeCall(encodeCall(forward)))).toEqual(forward)
  })

  it("join what the model reads, and spread out compressed columns", () => {
    const wire = datumToWire(datum)
    const twice = { ...wire, modelInput: [...wire.modelInput, ...wire.modelInput], lossInputs: new Map() }
    expect(datumFromWire(twice).tokens).toEqual(Int32Array.of(5, 6, 7, 5, 6, 7))
    const pieces = { chunks: [{ type: "encoded_text", tokens: [5] }, { tokens: [6, 7] }] }
    expect(datumFromJson({ ...(through(datumToJson(datum)) as object), model_input: pieces })).toEqual(datum)
  })

  it("that make no sense are rejected", () => {
    const json = () => through(datumToJson(datum)) as Record<string, never>
    const inputs = (inputs: object) => () => datumFromJson({ ...json(), loss_fn_inputs: inputs })
    expect(inputs({ weights: { data: [1], dtype: "float32", shape: [1] } })).toThrow(/weights has 1 values/)
    expect(inputs({ target_tokens: { data: [1, 2.5, 3], dtype: "int64", shape: [3] } })).toThrow(/32-bit integers/)
    expect(inputs({ weights: { data: [1, 2, 3, 4, 5, 6], dtype: "float32", shape: [3, 2] } })).toThrow(/several values/)
    expect(inputs({ weights: "much" })).toThrow(bad)
    expect(() => datumFromJson(null)).toThrow(bad)
    expect(() => datumFromJson({ model_input: { chunks: [{ type: "image", data: "" }] } })).toThrow(/image/)
    expect(() => atOnce(callFromJson({}, false))).toThrow(/model_id/)
  })
})

describe("results", () => {
  const training = {
    logProbs: [Float32Array.of(-1, -2.5), new Float32Array(), Float32Array.of(-0.25)],
    metrics: { "loss:sum": 1.5 },
  }
  const sample = {
    sequences: [
      { tokens: Int32Array.of(3, 4), logProbs: Float32Array.of(-1, -0.5), stopped: true },
      { tokens: Int32Array.of(9), logProbs: Float32Array.of(-2), stopped: false },
    ],
    promptLogProbs: Float32Array.of(Number.NaN, -1.5),
  }

  it("say the same in either form", () => {
    expect(decodeTraining(encodeTraining(training))).toEqual(training)
    expect(trainingFromJson(written(trainingParts(training)))).toEqual(training)
    expect(decodeSample(encodeSample(sample))).toEqual(sample)
    expect(sampleFromJson(written(sampleParts(sample)))).toEqual(sample)
    expect(written(trainingParts({ logProbs: [], metrics: {} }))).toMatchObject({ loss_fn_outputs: [], metrics: {} })
  })

  it("that make no sense are rejected", () => {
    expect(() => trainingFromJson({})).toThrow(bad)
    expect(() => sampleFromJson(undefined)).toThrow(bad)
  })
})
