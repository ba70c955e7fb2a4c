import { GigpoError } from "../util/errors.ts"
import { bytesOf, countValues, dtypes, int64Bytes, readFloat32, readInt32, readInt64, readValues } from "./arrays.ts"
import { type JsonTensor, tensorToJson, wholeNumbers } from "./datum.ts"
import { mostData, mostMetrics, mostSamples } from "./limits.ts"
import { type ForwardBackwardOutput, forwardBackwardOutput, sampleResponse } from "./messages.ts"

// Results of /forward_backward and /asample in both encodings.

/** JSON object with one field that is a long list, whose items are created one at a time. */
export interface ListedJson {
  readonly rest: object
  readonly name: string
  readonly items: readonly (() => object)[]
}

/** Returns the text of such an object, one item at a time. */
export function* writtenParts({ rest, name, items }: ListedJson): Generator<string> {
  yield `${JSON.stringify(rest).slice(0, -1)},${JSON.stringify(name)}:[`
  for (const [i, make] of items.entries()) yield `${i > 0 ? "," : ""}${JSON.stringify(make())}`
  yield "]}"
}

/** Result of a training call. */
export interface TrainingResult {
  /** Log-probabilities of the targets of each datum, [n], under the weights at the time of the call. */
  readonly logProbs: readonly Float32Array[]
  /** Metrics by name:reduction. */
  readonly metrics: Readonly<Record<string, number>>
}

const outputType = "ArrayRecord"

/** Encodes a training result. */
export function encodeTraining({ logProbs, metrics }: TrainingResult): Uint8Array {
  const offsets = [0]
  for (const { byteLength } of logProbs) offsets.push(offsets.at(-1)! + byteLength)
  const data = new Uint8Array(offsets.at(-1)!)
  for (const [i, one] of logProbs.entries()) data.set(bytesOf(one), offsets[i])
  const column = { data, offsets: int64Bytes(offsets), dtype: dtypes.float32, trailingShape: [] }
  const fields = new Map([["logprobs", column]])
  return forwardBackwardOutput.encode({
    type: outputType,
    outputs: [{ type: "logprobs", fields, count: logProbs.length }],
    metrics: new Map(Object.entries(metrics)),
  })
}

/**
 * Decodes a training result.
 *
 * @param most - maximum number of data, that of the request; nothing is allocated for more.
 * @throws GigpoError `BAD_ARGUMENT`
 */
export function decodeTraining(bytes: Uint8Array, most: number = mostData): TrainingResult {
  const { outputs, metrics } = forwardBackwardOutput.decode(bytes)
  const logProbs: Float32Array[] = []
  for (const output of outputs) {
    if (!(output.count >= 0 && output.count <= most - logProbs.length))
      throw bad(`The result has more data than the ${most} of the request.`)
    logProbs.push(...columnOf(output))
  }
  return { logProbs, metrics: Object.fromEntries(metrics) }
}

function columnOf({ fields, count }: ForwardBackwardOutput["outputs"][number]): Float32Array[] {
  const column = fields.get("logprobs")
  if (!column) return Array.from({ length: count }, () => new Float32Array())
  const { data, offsets, dtype } = column
  if (countValues(offsets, dtypes.int64) !== count + 1)
    throw bad("The number of offsets of the result does not match its data.")
  const places = readInt64(offsets)
  return Array.from({ length: count }, (_, i) => {
    const [begin, end] = [places[i]!, places[i + 1]!]
    if (begin < 0 || end < begin || end > data.length) throw bad("The offsets of the result are outside its data.")
    const values = readValues(data.subarray(begin, end), dtype || dtypes.float32)
    return values instanceof Float32Array ? values : Float32Array.from(values)
  })
}

/** Returns the JSON of a training result, one output at a time. */
export function trainingParts({ logProbs, metrics }: TrainingResult): ListedJson {
  const items = logProbs.map((one) => () => ({ logprobs: tensorToJson(one) }))
  return { rest: { loss_fn_output_type: outputType, metrics }, name: "loss_fn_outputs", items }
}

/** Decodes a training result in JSON. Throws `BAD_ARGUMENT`. */
export function trainingFromJson(body: unknown, most: number = mostData): TrainingResult {
  const { loss_fn_outputs, metrics } = (body ?? {}) as Record<string, unknown>
  if (!Array.isArray(loss_fn_outputs)) throw bad("The training result has no loss_fn_outputs.")
  if (loss_fn_outputs.length > most)
    throw bad(`The result has ${loss_fn_outputs.length} data, but the request has ${most}.`)
  const logProbs = loss_fn_outputs.map((output: { logprobs?: JsonTensor } | null) =>
    Float32Array.from(listOf(output?.logprobs?.data), orNaN),
  )
  const pairs = typeof metrics === "object" && metrics !== null ? Object.entries(metrics).slice(0, mostMetrics) : []
  return { logProbs, metrics: Object.fromEntries(pairs.filter(([, value]) => typeof value === "number")) }
}

/** Returns a list, or an empty one for any other value, even an object with a length. */
const listOf = (given: unknown): readonly unknown[] => (Array.isArray(given) ? given : [])
const bad = (what: string) => new GigpoError("BAD_ARGUMENT", what)

/** Result of a sampling request. */
export interface SampleResult {
  readonly sequences: readonly {
    readonly tokens: Int32Array
    readonly logProbs?: Float32Array | undefined
    readonly stopped: boolean
    readonly top?: Top | undefined
  }[]
  /** Log-probabilities of the prompt, [n], or [n − 1] on servers that leave out the first token; NaN for no value. */
  readonly promptLogProbs?: Float32Array | undefined
  readonly promptTop?: Top | undefined
}

/** Most likely tokens, [length × count]; an empty cell is token 0 with log-probability -99999. */
export interface Top {
  readonly count: number
  readonly tokens: Int32Array
  readonly logProbs: Float32Array
}

/** Encodes a sampling result. */
export function encodeSample({ sequences, promptLogProbs, promptTop }: SampleResult): Uint8Array {
  return sampleResponse.encode({
    sequences: sequences.map(({ tokens, logProbs, stopped, top }) => ({
      stopReason: stopped ? 0 : 1,
      tokens: bytesOf(tokens),
      logProbs: logProbs && bytesOf(logProbs),
      top: top && topToWire(top),
    })),
    promptLogProbs: promptLogProbs && bytesOf(promptLogProbs),
    promptTop: promptTop && topToWire(promptTop),
    cachedTokens: 0,
  })
}

/** Decodes a sampling result. Throws `BAD_ARGUMENT`. */
export function decodeSample(bytes: Uint8Array): SampleResult {
  const { sequences, promptLogProbs } = sampleResponse.decode(bytes)
  return {
    sequences: sequences.map(({ stopReason, tokens, logProbs }) => ({
      tokens: readInt32(tokens),
      logProbs: logProbs && readFloat32(logProbs),
      stopped: stopReason === 0,
    })),
    promptLogProbs: promptLogProbs && readFloat32(promptLogProbs),
  }
}

/** Returns the JSON of a sampling result, one sequence at a time. */
export function sampleParts({ sequences, promptLogProbs, promptTop }: SampleResult): ListedJson {
  const rest = {
    type: "sample",
    ...(promptLogProbs && { prompt_logprobs: Array.from(promptLogProbs, orNull) }),
    ...(promptTop && { topk_prompt_logprobs: topToJson(promptTop) }),
  }
  const items = sequences.map(({ tokens, logProbs, stopped, top }) => () => ({
    stop_reason: stopped ? "stop" : "length",
    tokens: Array.from(tokens),
    ...(logProbs && { logprobs: Array.from(logProbs) }),
    ...(top && { topk_logprobs: topToJson(top) }),
  }))
  return { rest, name: "sequences", items }
}

/** Decodes a sampling result in JSON. Throws `BAD_ARGUMENT`. */
export function sampleFromJson(body: unknown): SampleResult {
  const { sequences, prompt_logprobs } = (body ?? {}) as Record<string, unknown>
  if (!Array.isArray(sequences)) throw bad("The sampling result has no sequences.")
  if (sequences.length > mostSamples)
    throw bad(`The result has ${sequences.length} sequences; the maximum is ${mostSamples}.`)
  const numbers = (given: unknown) => (Array.isArray(given) ? Float32Array.from(given, orNaN) : undefined)
  return {
    sequences: sequences.map((one: Record<string, unknown> | null) => ({
      tokens: wholeNumbers("tokens", one?.tokens),
      logProbs: numbers(one?.logprobs),
      stopped: one?.stop_reason === "stop",
    })),
    promptLogProbs: numbers(prompt_logprobs),
  }
}

const orNaN = (value: unknown) => (typeof value === "number" ? value : Number.NaN)
const orNull = (value: number) => (Number.isNaN(value) ? null : value)

function topToWire({ count, tokens, logProbs }: Top) {
  return { tokens: bytesOf(tokens), logProbs: bytesOf(logProbs), count, length: tokens.length / count }
}

/** Returns [token, log-probability] pairs per position, most likely first; null if there are none. */
function topToJson({ count, tokens, logProbs }: Top): ([number, number][] | null)[] {
  return Array.from({ length: tokens.length / count }, (_, place) => {
    const cells = Array.from({ length: count }, (_, i): [number, number] => [
      tokens[place * count + i]!,
      logProbs[place * count + i]!,
    ])
    const known = cells.filter(([, logProb]) => logProb > noLogProb)
    return known.length > 0 ? known : null
  })
}

/** Log-probability of an empty cell. */
export const noLogProb = -99_999
