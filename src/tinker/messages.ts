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

// Messages of the Tinker API as protocol buffers (SDK 0.38): the request of /forward_backward, and the results of /forward_backward
// and /asample. Arrays are little-endian bytes: tokens int32, log-probabilities float32, offsets and indices int64, others by `dtype`.

export type WireTensor = Held<typeof tensor>
const tensor = new Message({
  dense: bytesIfThere(1),
  /** Compressed sparse rows; missing cells are 0. */
  sparse: messageIfThere(2, new Message({ values: bytes(1), rowPointers: bytes(2), columns: bytes(3) })),
  dtype: integer(3),
  shape: manyIntegers(4, mostDimensions),
})

/** Piece of the model input. Of images and audio only the presence is read. */
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
  /** Numeric settings; ignored if `configValues` is not empty. */
  config: mapOfDoubles(5, mostSettings),
  forwardOnly: flag(6),
  configValues: mapOfMessages(7, new Message({ number: doubleIfThere(1), text: textIfThere(2) }), mostSettings),
})

/** One column of all data, concatenated; `offsets` [data + 1] are the positions in bytes. */
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

/** Most likely tokens, [length × count]; an empty cell is token 0 with log-probability -99999. */
const top = new Message({ tokens: bytes(1), logProbs: bytes(2), count: integer(3), length: integer(4) })

const sequence = new Message({
  /** 0 for a stop token, 1 for the maximum length. */
  stopReason: integer(1),
  tokens: bytes(2),
  logProbs: bytesIfThere(3),
  top: messageIfThere(4, top),
})

export type SampleResponse = Held<typeof sampleResponse>
export const sampleResponse = new Message({
  sequences: many(1, sequence, mostSamples),
  /** One value per token of the prompt (on some servers one fewer); NaN for no value. */
  promptLogProbs: bytesIfThere(2),
  promptTop: messageIfThere(3, top),
  cachedTokens: integer(4),
})
