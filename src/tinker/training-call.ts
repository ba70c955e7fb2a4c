import { GigpoError } from "../errors.ts"
import { type Datum, datumFromJson, datumFromWire, datumToJson, datumToWire } from "./datum.ts"
import { forwardBackwardRequest } from "./messages.ts"

/** What /forward_backward and /forward are asked, in either form. */
export interface TrainingCall {
  readonly modelId: string
  readonly seqId: number
  readonly data: readonly Datum[]
  /** By the API's names: cross_entropy, ppo, … */
  readonly loss: string
  readonly config: Readonly<Record<string, number | string>>
  readonly forwardOnly: boolean
}

/** Protocol buffers, for /forward_backward. */
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

/** @throws GigpoError `BAD_ARGUMENT` */
export function decodeCall(bytes: Uint8Array): TrainingCall {
  const { modelId, seqId, data, loss, config, configValues, forwardOnly } = forwardBackwardRequest.decode(bytes)
  const values = Array.from(configValues, ([key, { number, text }]) => [key, number ?? text ?? 0] as const)
  const all = Object.fromEntries<number | string>(values.length > 0 ? values : config)
  return { modelId, seqId, loss, forwardOnly, data: data.map(datumFromWire), config: all }
}

/** JSON: the body, whose inner part is named by where it goes. */
export function callToJson({ modelId, seqId, data, loss, config, forwardOnly }: TrainingCall): object {
  const input = { data: data.map(datumToJson), loss_fn: loss, loss_fn_config: config }
  return { model_id: modelId, seq_id: seqId, [inputName(forwardOnly)]: input }
}

/** @throws GigpoError `BAD_ARGUMENT` */
export function callFromJson(body: unknown, forwardOnly: boolean): TrainingCall {
  const { model_id, seq_id, ...rest } = (body ?? {}) as Record<string, unknown>
  const name = inputName(forwardOnly)
  const { data, loss_fn, loss_fn_config } = (rest[name] ?? {}) as Record<string, unknown>
  if (typeof model_id !== "string" || typeof seq_id !== "number" || !Array.isArray(data) || typeof loss_fn !== "string")
    throw new GigpoError("BAD_ARGUMENT", `A call needs model_id, seq_id and ${name} with data and loss_fn.`)
  const config = (loss_fn_config ?? {}) as TrainingCall["config"]
  return { modelId: model_id, seqId: seq_id, data: data.map(datumFromJson), loss: loss_fn, config, forwardOnly }
}

const inputName = (forwardOnly: boolean) => (forwardOnly ? "forward_input" : "forward_backward_input")
