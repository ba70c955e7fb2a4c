// Messages between engine and client, protocol buffers and JSON, read by either side.

import { promptFromJson } from "../../../modules/tinker/datum.js"
import { decodeSample, decodeTraining, encodeSample, encodeTraining, sampleFromJson, sampleParts, trainingFromJson, trainingParts, writtenParts } from "../../../modules/tinker/results.js" // biome-ignore format: one line
import { callFromJson, callToJson, decodeCall, encodeCall } from "../../../modules/tinker/training-call.js"

const datum = {
  tokens: Int32Array.of(5, 6, 7, 8),
  inputs: new Map([
    ["target_tokens", Int32Array.of(6, 7, 8, 9)],
    ["weights", Float32Array.of(0, 0, 1, 1)],
  ]),
}
const call = {
  modelId: "run:1",
  seqId: 3,
  data: [datum, datum],
  loss: "ppo",
  config: { clip: 0.2, kind: "x" },
  forwardOnly: false,
}
const training = { logProbs: [Float32Array.of(-1, -2), Float32Array.of(-3)], metrics: { "loss:sum": 1.5 } }
const sample = {
  sequences: [{ tokens: Int32Array.of(1, 2, 3), logProbs: Float32Array.of(-1, -2, -3), stopReason: "stop" }],
  promptLogProbs: Float32Array.of(0, -1),
  promptTop: undefined,
}

/** All of what is read in pieces. */
function whole(pieces) {
  for (;;) {
    const { done, value } = pieces.next()
    if (done) return value
  }
}

export async function prepare() {
  const json = (value) => Buffer.from(JSON.stringify(value))
  const parts = (listed) => Buffer.from([...writtenParts(listed)].join(""))
  const forms = {
    "call.bin": [Buffer.from(encodeCall(call)), (bytes) => whole(decodeCall(bytes))],
    "training.bin": [Buffer.from(encodeTraining(training)), (bytes) => decodeTraining(bytes)],
    "sample.bin": [Buffer.from(encodeSample(sample)), (bytes) => decodeSample(bytes)],
    "call.json": [json(callToJson(call)), (bytes) => whole(callFromJson(JSON.parse(bytes), false))],
    "training.json": [parts(trainingParts(training)), (bytes) => trainingFromJson(JSON.parse(bytes))],
    "sample.json": [parts(sampleParts(sample)), (bytes) => sampleFromJson(JSON.parse(bytes))],
    "prompt.json": [
      json({ chunks: [{ type: "encoded_text", tokens: [1, 2] }] }),
      (bytes) => promptFromJson(JSON.parse(bytes)),
    ],
  }
  return {
    seeds: Object.entries(forms).map(([name, [bytes]]) => ({ name, bytes })),
    run: ({ name, bytes }) => void forms[name][1](bytes),
    mayThrow: (error) => error instanceof SyntaxError && /JSON/.test(error.message), // of JSON.parse above
  }
}
