import { GigpoError } from "../errors.ts"
import { bytesOf, dtypes, int64Bytes, readInt32, readInt64, readValues, type Values } from "./arrays.ts"
import type { WireDatum, WireTensor } from "./messages.ts"

/** One sequence of a batch: at each place the loss tells of the token that comes next. */
export interface Datum {
  /** What the model reads, [n]. */
  readonly tokens: Int32Array
  /** What the loss takes, by the API's names, [n] each: target_tokens are whole numbers, all else is real. */
  readonly inputs: ReadonlyMap<string, Values>
}

export function datumToWire({ tokens, inputs }: Datum): WireDatum {
  return {
    modelInput: [{ text: { tokens: bytesOf(tokens) }, image: undefined, audio: undefined }],
    lossInputs: new Map(Array.from(inputs, ([name, values]) => [name, tensorToWire(values)])),
  }
}

function tensorToWire(values: Values): WireTensor {
  const real = values instanceof Float32Array
  return {
    dense: real ? bytesOf(values) : int64Bytes(values),
    sparse: undefined,
    dtype: real ? dtypes.float32 : dtypes.int64,
    shape: [values.length],
  }
}

/** @throws GigpoError `BAD_ARGUMENT` where it is of images, of more than one target a place, or its lengths do not agree. */
export function datumFromWire({ modelInput, lossInputs }: WireDatum): Datum {
  const pieces = modelInput.map(({ text }) => {
    if (!text) throw bad("model_input holds an image or audio; only encoded_text is read here")
    return readInt32(text.tokens)
  })
  return checked(
    joined(pieces),
    Array.from(lossInputs, ([name, { dense, sparse, dtype, shape }]) => {
      if (sparse) {
        const [rows = 0, columns = 1] = shape
        if (columns !== 1) throw manyTargets(name)
        return [name, spread(rows, readValues(sparse.values, dtype), readInt64(sparse.rowPointers))]
      }
      if (shape.length > 1 && shape[1] !== 1) throw manyTargets(name)
      return [name, readValues(dense ?? new Uint8Array(), dtype)]
    }),
  )
}

/** Compressed rows of at most one value each; a missing one is 0. */
function spread(rows: number, values: Values, rowPointers: Int32Array): Values {
  const whole = values instanceof Int32Array ? new Int32Array(rows) : new Float32Array(rows)
  for (let row = 0; row < rows; row++)
    if (rowPointers[row + 1]! > rowPointers[row]!) whole[row] = values[rowPointers[row]!]!
  return whole
}

export interface JsonTensor {
  readonly data: readonly number[]
  readonly dtype: "float32" | "int64"
  readonly shape: readonly number[]
}

export interface JsonDatum {
  readonly model_input: { readonly chunks: readonly { readonly type: "encoded_text"; readonly tokens: number[] }[] }
  readonly loss_fn_inputs: Readonly<Record<string, JsonTensor>>
}

export function datumToJson({ tokens, inputs }: Datum): JsonDatum {
  return {
    model_input: { chunks: [{ type: "encoded_text", tokens: Array.from(tokens) }] },
    loss_fn_inputs: Object.fromEntries(Array.from(inputs, ([name, values]) => [name, tensorToJson(values)])),
  }
}

export function tensorToJson(values: Values): JsonTensor {
  const dtype = values instanceof Float32Array ? "float32" : "int64"
  return { data: Array.from(values), dtype, shape: [values.length] }
}

/** @throws GigpoError `BAD_ARGUMENT` as `datumFromWire` does, and where it is no datum at all. */
export function datumFromJson(given: unknown): Datum {
  const { model_input, loss_fn_inputs } = (given ?? {}) as Partial<Record<keyof JsonDatum, unknown>>
  return checked(
    promptFromJson(model_input),
    Object.entries((loss_fn_inputs ?? {}) as object).map(([name, tensor]) => [name, tensorFromJson(name, tensor)]),
  )
}

/** The tokens of `{ chunks: [{ type: "encoded_text", tokens }] }`. */
export function promptFromJson(given: unknown): Int32Array {
  const { chunks } = (given ?? {}) as { chunks?: unknown }
  if (!Array.isArray(chunks)) throw bad("model_input has no chunks")
  return joined(
    chunks.map((chunk: { type?: unknown; tokens?: unknown } | null) => {
      if (chunk?.type !== undefined && chunk.type !== "encoded_text")
        throw bad(`A chunk is of type ${JSON.stringify(chunk.type)}; only encoded_text is read here`)
      return wholeNumbers("tokens", chunk?.tokens)
    }),
  )
}

function tensorFromJson(name: string, given: unknown): Values {
  const { data, dtype, shape } = (given ?? {}) as Partial<Record<keyof JsonTensor, unknown>>
  if (Array.isArray(shape) && shape.length > 1 && shape[1] !== 1) throw manyTargets(name)
  if (dtype === "int64" || dtype === "int32") return wholeNumbers(name, data)
  if (!Array.isArray(data) || !data.every((value) => typeof value === "number")) throw bad(`${name} holds no numbers`)
  return Float32Array.from(data as number[])
}

function wholeNumbers(name: string, given: unknown): Int32Array {
  if (!Array.isArray(given) || !given.every((value) => Number.isInteger(value) && Math.abs(value) < 2 ** 31))
    throw bad(`${name} must hold whole numbers`)
  return Int32Array.from(given as number[])
}

function checked(tokens: Int32Array, inputs: readonly (readonly [string, Values])[]): Datum {
  for (const [name, { length }] of inputs)
    if (length !== tokens.length)
      throw bad(`${name} has ${length} values, and model_input ${tokens.length} tokens; give one a token`)
  return { tokens, inputs: new Map(inputs) }
}

function joined(pieces: readonly Int32Array[]): Int32Array {
  if (pieces.length === 1) return pieces[0]!
  const whole = new Int32Array(pieces.reduce((sum, { length }) => sum + length, 0))
  let end = 0
  for (const piece of pieces) {
    whole.set(piece, end)
    end += piece.length
  }
  return whole
}

const manyTargets = (name: string) => bad(`${name} has several values a place; only one is read here`)
const bad = (what: string) => new GigpoError("BAD_ARGUMENT", `${what}.`)
