import { GigpoError } from "../errors.ts"
import { bytesOf, dtypes, int64Bytes, readFloat32, readInt32, readInt64 } from "./arrays.ts"
import { type JsonTensor, tensorToJson } from "./datum.ts"
import { forwardBackwardOutput, sampleResponse } from "./messages.ts"

// What futures of /forward_backward and /asample hold, in either form.

export interface TrainingResult {
  /** Of each datum's targets, [n], under the weights as they were. */
  readonly logProbs: readonly Float32Array[]
  /** By name:reduction. */
  readonly metrics: Readonly<Record<string, number>>
}

const outputType = "ArrayRecord"

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

/** @throws GigpoError `BAD_ARGUMENT` */
export function decodeTraining(bytes: Uint8Array): TrainingResult {
  const { outputs, metrics } = forwardBackwardOutput.decode(bytes)
  const logProbs = outputs.flatMap(({ fields, count }) => {
    const column = fields.get("logprobs")
    if (!column) return Array.from({ length: count }, () => new Float32Array())
    const offsets = readInt64(column.offsets)
    return Array.from({ length: count }, (_, i) => readFloat32(column.data.subarray(offsets[i], offsets[i + 1])))
  })
  return { logProbs, metrics: Object.fromEntries(metrics) }
}

export function trainingToJson({ logProbs, metrics }: TrainingResult): object {
  return {
    loss_fn_output_type: outputType,
    loss_fn_outputs: logProbs.map((one) => ({ logprobs: tensorToJson(one) })),
    metrics,
  }
}

/** @throws GigpoError `BAD_ARGUMENT` */
export function trainingFromJson(body: unknown): TrainingResult {
  const { loss_fn_outputs, metrics } = (body ?? {}) as Record<string, unknown>
  if (!Array.isArray(loss_fn_outputs))
    throw new GigpoError("BAD_ARGUMENT", "A result of the loss has no loss_fn_outputs.")
  const logProbs = loss_fn_outputs.map((output: { logprobs?: JsonTensor } | null) =>
    Float32Array.from(output?.logprobs?.data ?? []),
  )
  return { logProbs, metrics: (metrics ?? {}) as TrainingResult["metrics"] }
}

export interface SampleResult {
  readonly sequences: readonly {
    readonly tokens: Int32Array
    readonly logProbs?: Float32Array | undefined
    readonly stopped: boolean
    readonly top?: Top | undefined
  }[]
  /** Of the prompt's tokens but the first: [n], or [n − 1] of servers that leave it out; NaN where there is none. */
  readonly promptLogProbs?: Float32Array | undefined
  readonly promptTop?: Top | undefined
}

/** [length × count] of the likeliest tokens; an empty cell is token 0 with -99999. */
export interface Top {
  readonly count: number
  readonly tokens: Int32Array
  readonly logProbs: Float32Array
}

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

/** @throws GigpoError `BAD_ARGUMENT` */
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

export function sampleToJson({ sequences, promptLogProbs, promptTop }: SampleResult): object {
  return {
    type: "sample",
    sequences: sequences.map(({ tokens, logProbs, stopped, top }) => ({
      stop_reason: stopped ? "stop" : "length",
      tokens: Array.from(tokens),
      ...(logProbs && { logprobs: Array.from(logProbs) }),
      ...(top && { topk_logprobs: topToJson(top) }),
    })),
    ...(promptLogProbs && { prompt_logprobs: Array.from(promptLogProbs, orNull) }),
    ...(promptTop && { topk_prompt_logprobs: topToJson(promptTop) }),
  }
}

/** @throws GigpoError `BAD_ARGUMENT` */
export function sampleFromJson(body: unknown): SampleResult {
  const { sequences, prompt_logprobs } = (body ?? {}) as Record<string, unknown>
  if (!Array.isArray(sequences)) throw new GigpoError("BAD_ARGUMENT", "A result of sampling has no sequences.")
  const numbers = (given: unknown) =>
    Array.isArray(given) ? Float32Array.from(given, (value) => value ?? Number.NaN) : undefined
  return {
    sequences: sequences.map((one: Record<string, unknown>) => ({
      tokens: Int32Array.from((one.tokens ?? []) as number[]),
      logProbs: numbers(one.logprobs),
      stopped: one.stop_reason === "stop",
    })),
    promptLogProbs: numbers(prompt_logprobs),
  }
}

const orNull = (value: number) => (Number.isNaN(value) ? null : value)

function topToWire({ count, tokens, logProbs }: Top) {
  return { tokens: bytesOf(tokens), logProbs: bytesOf(logProbs), count, length: tokens.length / count }
}

/** At each place [token, log-probability], the likeliest first; null where nothing is known. */
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

/** What stands in an empty cell. */
export const noLogProb = -99_999
