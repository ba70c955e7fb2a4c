import { GigpoError } from "../util/errors.ts"
import { bytesOf, countValues, dtypes, int64Bytes, readInt32, readInt64, readValues, type Values } from "./arrays.ts"
import { mostChunks, mostInputs, mostTokens } from "./limits.ts"
import type { WireDatum, WireTensor } from "./messages.ts"

/** Training sequence in the form of the API: the target at each position is the next token. */
export interface Datum {
  /** Input tokens, [n]. */
  readonly tokens: Int32Array
  /** Inputs of the loss by their names in the API, [n] each: target_tokens are integers, all others floating-point numbers. */
  readonly inputs: ReadonlyMap<string, Values>
}

/** Converts a datum to a protocol buffer. */
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

/**
 * Reads a datum from a protocol buffer. Declared sizes are checked against actual ones before anything is allocated.
 *
 * @param most - maximum number of tokens
 * @throws GigpoError `BAD_ARGUMENT` for more tokens, images or audio, several targets per position, and lengths that do not match.
 */
export function datumFromWire({ modelInput, lossInputs }: WireDatum, most: number = mostTokens): Datum {
  let count = 0
  for (const { text } of modelInput) {
    if (!text) throw bad("model_input contains an image or audio; only encoded_text is supported")
    count += countValues(text.tokens, dtypes.int32)
  }
  checkCount(count, most)
  const tokens = joined(modelInput.map(({ text }) => readInt32(text!.tokens)))
  return {
    tokens,
    inputs: new Map(
      Array.from(lossInputs, ([name, tensor]) => [name, typed(name, tensorFromWire(name, tensor, count))]),
    ),
  }
}

/** Converts integers to floating-point numbers, except for tokens. */
function typed(name: string, values: Values): Values {
  return name === "target_tokens" || values instanceof Float32Array ? values : Float32Array.from(values)
}

/** Reads a tensor with one value per token. */
function tensorFromWire(name: string, { dense, sparse, dtype, shape }: WireTensor, tokens: number): Values {
  const [rows, columns = 1] = shape
  if (columns !== 1 || shape.slice(2).some((size) => size !== 1)) throw manyTargets(name)
  if (rows !== undefined) checkLength(name, rows, tokens)
  if (sparse) {
    if (rows === undefined) throw bad(`${name} is compressed but has no shape`)
    if (countValues(sparse.values, dtype) > tokens) throw manyTargets(name)
    return spread(name, sparse, dtype, tokens)
  }
  const bytes = dense ?? new Uint8Array()
  checkLength(name, countValues(bytes, dtype), tokens)
  return readValues(bytes, dtype)
}

/** Expands compressed rows of at most one value each; missing values are 0. */
function spread(name: string, sparse: NonNullable<WireTensor["sparse"]>, dtype: number, rows: number): Values {
  const malformed = () => bad(`${name} is not a valid compressed tensor of ${rows} rows and one column`)
  if (countValues(sparse.rowPointers, dtypes.int64) !== rows + 1) throw malformed()
  const pointers = readInt64(sparse.rowPointers)
  const values = readValues(sparse.values, dtype)
  if (pointers[0] !== 0 || pointers[rows] !== values.length) throw malformed()
  const whole = values instanceof Int32Array ? new Int32Array(rows) : new Float32Array(rows)
  for (let row = 0; row < rows; row++) {
    const [begin, end] = [pointers[row]!, pointers[row + 1]!]
    if (end !== begin && end !== begin + 1) throw malformed()
    if (end > begin) whole[row] = values[begin]!
  }
  return whole
}

/** Tensor in JSON. */
export interface JsonTensor {
  readonly data: readonly number[]
  readonly dtype: "float32" | "int64"
  readonly shape: readonly number[]
}

/** Datum in JSON. */
export interface JsonDatum {
  readonly model_input: { readonly chunks: readonly { readonly type: "encoded_text"; readonly tokens: number[] }[] }
  readonly loss_fn_inputs: Readonly<Record<string, JsonTensor>>
}

/** Converts a datum to JSON. */
export function datumToJson({ tokens, inputs }: Datum): JsonDatum {
  return {
    model_input: { chunks: [{ type: "encoded_text", tokens: Array.from(tokens) }] },
    loss_fn_inputs: Object.fromEntries(Array.from(inputs, ([name, values]) => [name, tensorToJson(values)])),
  }
}

/** Converts a tensor to JSON. */
export function tensorToJson(values: Values): JsonTensor {
  const dtype = values instanceof Float32Array ? "float32" : "int64"
  return { data: Array.from(values), dtype, shape: [values.length] }
}

/** Reads a datum from JSON. Throws `BAD_ARGUMENT` as `datumFromWire`, and for other JSON. */
export function datumFromJson(given: unknown, most: number = mostTokens): Datum {
  const { model_input, loss_fn_inputs = {} } = (given ?? {}) as Partial<Record<keyof JsonDatum, unknown>>
  const tokens = promptFromJson(model_input, most)
  if (typeof loss_fn_inputs !== "object" || loss_fn_inputs === null) throw bad("loss_fn_inputs must be an object")
  const inputs = Object.entries(loss_fn_inputs)
  if (inputs.length > mostInputs) throw bad(`A datum has ${inputs.length} loss_fn_inputs; the maximum is ${mostInputs}`)
  return {
    tokens,
    inputs: new Map(inputs.map(([name, tensor]) => [name, typed(name, tensorFromJson(name, tensor, tokens.length))])),
  }
}

/** Reads the tokens of `{ chunks: [{ type: "encoded_text", tokens }] }`. Throws `BAD_ARGUMENT` for more than `most`. */
export function promptFromJson(given: unknown, most: number = mostTokens): Int32Array {
  const { chunks } = (given ?? {}) as { chunks?: unknown }
  if (!Array.isArray(chunks)) throw bad("model_input has no chunks")
  if (chunks.length > mostChunks) throw bad(`model_input has ${chunks.length} chunks; the maximum is ${mostChunks}`)
  let count = 0
  return joined(
    chunks.map((chunk: { type?: unknown; tokens?: unknown } | null) => {
      if (chunk?.type !== undefined && chunk.type !== "encoded_text")
        throw bad(`A chunk has type ${quoted(chunk.type)}; only encoded_text is supported`)
      count += lengthOf(chunk?.tokens)
      checkCount(count, most)
      return wholeNumbers("tokens", chunk?.tokens)
    }),
  )
}

function tensorFromJson(name: string, given: unknown, tokens: number): Values {
  const { data, dtype, shape } = (given ?? {}) as Partial<Record<keyof JsonTensor, unknown>>
  if (Array.isArray(shape) && shape.length > 1 && shape[1] !== 1) throw manyTargets(name)
  if (Array.isArray(data)) checkLength(name, data.length, tokens)
  if (dtype === "int64" || dtype === "int32") return wholeNumbers(name, data)
  if (!Array.isArray(data) || !data.every((value) => typeof value === "number"))
    throw bad(`${shortened(name)} must be a list of numbers`)
  return Float32Array.from(data as number[])
}

/** Checks and returns a list of 32-bit integers. Throws `BAD_ARGUMENT`. */
export function wholeNumbers(name: string, given: unknown): Int32Array {
  if (!Array.isArray(given) || !given.every((value) => Number.isInteger(value) && Math.abs(value) < 2 ** 31))
    throw bad(`${shortened(name)} must be a list of 32-bit integers`)
  return Int32Array.from(given as number[])
}

const lengthOf = (list: unknown): number => (Array.isArray(list) ? list.length : 0)

function checkCount(tokens: number, most: number): void {
  if (tokens > most) throw bad(`model_input has more than ${most} tokens, the maximum`)
}

function checkLength(name: string, length: number, tokens: number): void {
  if (length !== tokens)
    throw bad(`${shortened(name)} has ${length} values, but model_input has ${tokens} tokens; give one value per token`)
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

/** Shortens an untrusted name for a message. */
const shortened = (name: string) => name.slice(0, 100)
const quoted = (type: unknown) => (typeof type === "string" ? JSON.stringify(shortened(type)) : typeof type)
const manyTargets = (name: string) => bad(`${shortened(name)} has several values per position; only one is supported`)
const bad = (what: string) => new GigpoError("BAD_ARGUMENT", `${what}.`)
