import { GigpoError } from "../util/errors.ts"
import type { Pieces } from "../util/pace.ts"
import { type Datum, datumFromJson, datumFromWire, datumToJson, datumToWire } from "./datum.ts"
import { mostData, mostSettings, mostTokens } from "./limits.ts"
import { forwardBackwardRequest } from "./messages.ts"

/** Request of /forward_backward or /forward. */
export interface TrainingCall {
  readonly modelId: string
  readonly seqId: number
  readonly data: readonly Datum[]
  /** Name of the loss in the API: cross_entropy, ppo, … */
  readonly loss: string
  readonly config: Readonly<Record<string, number | string>>
  readonly forwardOnly: boolean
}

/** Encodes a request as a protocol buffer, for /forward_backward. */
export function encodeCall({ modelId, seqId, data, loss, config, forwardOnly }: TrainingCall): Uint8Array {
  const given = Object.entries(config)
  const numbers = given.flatMap(([key, value]) => (typeof value === "number" ? [[key, value] as const] : []))
  const values = given.map(([key, value]) => {
    return [
      key,
      typeof value === "number" ? { number: value, text: undefined } : { number: undefined, text: value },
    ] as const
  })
  const wire = data.map(datumToWire)
  return forwardBackwardRequest.encode({
    ...{ modelId, seqId, loss, forwardOnly, data: wire },
    config: new Map(numbers),
    configValues: new Map(values),
  })
}

/**
 * Decodes a protocol buffer, one datum per piece of work.
 *
 * @param most - maximum tokens of one datum
 * @throws GigpoError `BAD_ARGUMENT`
 */
export function* decodeCall(bytes: Uint8Array, most: number = mostTokens): Pieces<TrainingCall> {
  const { modelId, data, loss, configValues, forwardOnly, ...wire } = yield* forwardBackwardRequest.read(bytes)
  const values = Array.from(configValues, ([key, { number, text }]) => [key, number ?? text ?? 0] as const)
  const config = Object.fromEntries<number | string>(values.length > 0 ? values : wire.config)
  const seqId = checkSeqId(wire.seqId)
  return { modelId, seqId, loss, forwardOnly, data: yield* each(data, (one) => datumFromWire(one, most)), config }
}

/** Encodes a request as JSON. The name of the inner field depends on the path. */
export function callToJson({ modelId, seqId, data, loss, config, forwardOnly }: TrainingCall): object {
  const input = { data: data.map(datumToJson), loss_fn: loss, loss_fn_config: config }
  return { model_id: modelId, seq_id: seqId, [inputName(forwardOnly)]: input }
}

/** Decodes JSON, one datum per piece of work. Throws `BAD_ARGUMENT`. */
export function* callFromJson(body: unknown, forwardOnly: boolean, most: number = mostTokens): Pieces<TrainingCall> {
  const { model_id, seq_id, ...rest } = (body ?? {}) as Record<string, unknown>
  const name = inputName(forwardOnly)
  const { data, loss_fn, loss_fn_config } = (rest[name] ?? {}) as Record<string, unknown>
  if (typeof model_id !== "string" || typeof seq_id !== "number" || !Array.isArray(data) || typeof loss_fn !== "string")
    throw new GigpoError("BAD_ARGUMENT", `A call needs model_id, seq_id and ${name} with data and loss_fn.`)
  if (data.length > mostData)
    throw new GigpoError("BAD_ARGUMENT", `The call has ${data.length} data; the maximum is ${mostData}.`)
  return {
    ...{ modelId: model_id, seqId: checkSeqId(seq_id), loss: loss_fn, forwardOnly },
    config: configFromJson(loss_fn_config ?? {}),
    data: yield* each(data, (one) => datumFromJson(one, most)),
  }
}

function configFromJson(given: unknown): TrainingCall["config"] {
  if (typeof given !== "object" || Array.isArray(given) || Object.keys(given as object).length > mostSettings)
    throw new GigpoError("BAD_ARGUMENT", `loss_fn_config must be an object of at most ${mostSettings} settings.`)
  return given as TrainingCall["config"]
}

/** Reads the data of a call. Throws `BAD_ARGUMENT` above the maximum of all tokens. */
function* each<T>(given: readonly T[], read: (datum: T) => Datum): Pieces<Datum[]> {
  const data: Datum[] = []
  let tokens = 0
  for (const one of given) {
    yield
    const datum = read(one)
    tokens += datum.tokens.length
    if (tokens > mostTokens)
      throw new GigpoError("BAD_ARGUMENT", `The call has more than ${mostTokens} tokens; split the batch.`)
    data.push(datum)
  }
  return data
}

function checkSeqId(seqId: number): number {
  if (Number.isInteger(seqId) && seqId >= 0 && seqId < 2 ** 31) return seqId
  throw new GigpoError("BAD_ARGUMENT", "seq_id must be an integer from 0 to 2^31 - 1.")
}

const inputName = (forwardOnly: boolean) => (forwardOnly ? "forward_input" : "forward_backward_input")
