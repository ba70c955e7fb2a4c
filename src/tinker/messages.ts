import { mostChunks, mostData, mostDimensions, mostInputs, mostMetrics, mostSamples, mostSettings } from "./limits.ts"
import {
  bytes,
  bytesIfThere,
  doubleIfThere,
  flag,
  type Held,
  integer,
  Message,
  many,
  manyIntegers,
  mapOfDoubles,
  mapOfMessages,
  messageIfThere,
  text,
  textIfThere,
} from "./protobuf.ts"

// The messages of the Tinker API that travel as protocol buffers (SDK 0.38): what /forward_backward takes, and what it and /asample give.
// Arrays are little-endian bytes: tokens int32, log-probabilities float32, offsets and indices int64, other tensors as `dtype` says.

export type WireTensor = Held<typeof tensor>
const tensor = new Message({
  dense: bytesIfThere(1),
  /** Compressed sparse rows; a missing cell is 0. */
  sparse: messageIfThere(2, new Message({ values: bytes(1), rowPointers: bytes(2), columns: bytes(3) })),
  dtype: integer(3),
  shape: manyIntegers(4, mostDimensions),
})

/** A piece of what the model reads. Images and audio are told by their presence alone. */
const chunk = new Message({
  text: messageIfThere(1, new Message({ tokens: bytes(1) })),
  image: messageIfThere(2, new Message({})),
  audio: messageIfThere(3, new Message({})),
})

export type WireDatum = Held<typeof datum>
const datum = new Message({ modelInput: many(1, chunk, mostChunks), lossInputs: mapOfMessages(2, tensor, mostInputs) })

export type ForwardBackwardRequest = Held<typeof forwardBackwardRequest>
export const forwardBackwardRequest = new Message({
  modelId: text(1),
  seqId: integer(2),
  data: many(3, datum, mostData),
  loss: text(4),
  /** Numbers; where `configValues` has any a reader takes those. */
  config: mapOfDoubles(5, mostSettings),
  forwardOnly: flag(6),
  configValues: mapOfMessages(7, new Message({ number: doubleIfThere(1), text: textIfThere(2) }), mostSettings),
})

/** One column of many data, one after the other; `offsets` [data + 1] says at which byte each begins. */
const column = new Message({
  data: bytes(1),
  offsets: bytes(2),
  dtype: integer(3),
  trailingShape: manyIntegers(4, mostDimensions),
})

export type ForwardBackwardOutput = Held<typeof forwardBackwardOutput>
export const forwardBackwardOutput = new Message({
  type: text(1),
  outputs: many(
    2,
    new Message({ type: text(1), fields: mapOfMessages(2, column, mostInputs), count: integer(3) }),
    mostData,
  ),
  metrics: mapOfDoubles(3, mostMetrics),
})

/** [length × count] of the most likely tokens; an empty cell is token 0 with -99999. */
const top = new Message({ tokens: bytes(1), logProbs: bytes(2), count: integer(3), length: integer(4) })

const sequence = new Message({
  /** 0 where it stopped, 1 where it came to its length. */
  stopReason: integer(1),
  tokens: bytes(2),
  logProbs: bytesIfThere(3),
  top: messageIfThere(4, top),
})

export type SampleResponse = Held<typeof sampleResponse>
export const sampleResponse = new Message({
  sequences: many(1, sequence, mostSamples),
  /** As many as the prompt has tokens (of some servers one fewer); NaN where there is none. */
  promptLogProbs: bytesIfThere(2),
  promptTop: messageIfThere(3, top),
  cachedTokens: integer(4),
})
