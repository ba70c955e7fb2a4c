import { GigpoError } from "../../errors.ts"
import type { Pieces } from "../../pace.ts"
import type { Datum } from "../../tinker/datum.ts"
import type { Aggregation, ClippedSurrogate, Unit } from "../engine.ts"
import { type Row, type Span, sampledTokens } from "../rows.ts"
import { shares } from "../shares.ts"
import type { Form } from "./capabilities.ts"

// Rows as the API's data. It reads all tokens but the last and tells at each place of the next: a span's first token, at `start` of
// the row, is target start - 1.

/** A loss in the API's terms. */
export interface RemoteLoss {
  readonly loss: string
  readonly config: Readonly<Record<string, number>>
  readonly data: readonly Datum[]
}

export function datumOf({ tokens }: Row, columns: Readonly<Record<string, Float32Array>>): Datum {
  const targets = tokens.slice(1)
  return {
    tokens: tokens.slice(0, -1),
    inputs: new Map<string, Int32Array | Float32Array>([["target_tokens", targets], ...Object.entries(columns)]),
  }
}

/** What is asked to score tokens: a cross-entropy that counts each once. */
export function scoringData(rows: readonly Row[]): Datum[] {
  return rows.map((row) => datumOf(row, { weights: ones(row) }))
}

/** Of a result's targets those that were sampled: the spans, one after the other. */
export function ofSpans({ spans }: Row, targets: Float32Array): Float32Array {
  const values = new Float32Array(spans.reduce((sum, { length }) => sum + length, 0))
  let end = 0
  for (const { start, length } of spans) {
    values.set(targets.subarray(start - 1, start - 1 + length), end)
    end += length
  }
  return values
}

/**
 * Σ coefficient · log p, whose gradient is that of any loss with these derivatives by each log p.
 *
 * @param coefficients d loss / d log p: [sampled tokens of all rows]
 * @param now the log-probabilities of now, [sampled tokens of each row]: of "importance_sampling", whose ratio must be 1
 */
export function linearLoss(
  rows: readonly Row[],
  coefficients: Float32Array,
  route: "cross_entropy" | "importance_sampling",
  form: Form,
  now?: readonly Float32Array[],
): RemoteLoss {
  const perRow = split(rows, coefficients)
  if (route === "cross_entropy") {
    const data = rows.map((row, r) => datumOf(row, { weights: scattered(row, perRow[r]!, (value) => -value) }))
    return { loss: route, config: {}, data }
  }
  const data = rows.map((row, r) => {
    const scale = undoMeans(row, rows.length, form)
    return datumOf(row, {
      logprobs: scattered(row, now![r]!, (value) => value),
      advantages: scattered(row, perRow[r]!, (value) => -value * scale),
      ...weightsOf(row, form),
    })
  })
  return { loss: route, config: {}, data }
}

/** Minus the mean log-probability of the sampled tokens. */
export function cloningCoefficients(rows: readonly Row[]): Float32Array {
  const tokens = sampledTokens(rows)
  return new Float32Array(tokens).fill(-1 / tokens)
}

/** PPO's clipped surrogate: exact under a sum, since it is proportional to the advantage. */
export function* surrogateLoss(rows: readonly Row[], loss: ClippedSurrogate, form: Form): Pieces<RemoteLoss> {
  const share = tokenShares(rows, loss.aggregation, loss.unit ?? "span", loss.fixedLength)
  yield
  const data: Datum[] = []
  let token = 0
  for (const row of rows) {
    yield
    const scale = undoMeans(row, rows.length, form)
    const [logprobs, advantages] = [new Float32Array(row.tokens.length - 1), new Float32Array(row.tokens.length - 1)]
    for (const span of row.spans) {
      logprobs.set(span.oldLogProbs ?? known(span, "logProbs"), span.start - 1)
      for (let i = 0; i < span.length; i++)
        advantages[span.start - 1 + i] = scale * share[token++]! * advantageOf(span, i)
    }
    data.push(datumOf(row, { logprobs, advantages, ...weightsOf(row, form) }))
  }
  const config = { clip_low_threshold: 1 - loss.clipLow, clip_high_threshold: 1 + loss.clipHigh }
  return { loss: "ppo", config, data }
}

/** The data that something is to be learned from: the others' gradients are 0. */
export function* busy({ data }: RemoteLoss): Pieces<number[]> {
  const found: number[] = []
  for (const [index, { inputs }] of data.entries()) {
    if (index % 64 === 0) yield
    if ((inputs.get("advantages") ?? inputs.get("weights")!).some((value) => value !== 0)) found.push(index)
  }
  return found
}

/** Of the results of some rows those of sampled tokens, in their places among all rows': [sampled tokens], NaN elsewhere. */
export function* gathered(
  rows: readonly Row[],
  kept: readonly number[],
  results: readonly Float32Array[],
): Pieces<Float32Array> {
  const found = new Float32Array(sampledTokens(rows)).fill(Number.NaN)
  let [at, next] = [0, 0]
  for (const [index, row] of rows.entries()) {
    if (index % 64 === 0) yield
    const values = kept[next] === index ? ofSpans(row, results[next++]!) : undefined
    if (values) found.set(values, at)
    at += values?.length ?? sampledTokens([row])
  }
  return found
}

/** Only these data of a loss, each counting what it did. */
export function only({ data, ...rest }: RemoteLoss, kept: readonly number[], { reduction }: Form): RemoteLoss {
  const scale = reduction === "sum" ? 1 : kept.length / data.length
  const scaled = ({ tokens, inputs }: Datum): Datum => {
    const advantages = (inputs.get("advantages") as Float32Array).map((value) => scale * value)
    return { tokens, inputs: new Map(inputs).set("advantages", advantages) }
  }
  return { ...rest, data: kept.map((index) => (scale === 1 ? data[index]! : scaled(data[index]!))) }
}

/** What each sampled token counts, [sampled tokens of all rows]. */
function tokenShares(rows: readonly Row[], aggregation: Aggregation, unit: Unit, fixedLength?: number): Float32Array {
  const lengths =
    unit === "span"
      ? rows.flatMap(({ spans }) => spans.map(({ length }) => length))
      : rows.map(({ spans }) => spans.reduce((sum, { length }) => sum + length, 0))
  const offsets = new Int32Array(lengths.length + 1)
  for (const [i, length] of lengths.entries()) offsets[i + 1] = offsets[i]! + length
  return Float32Array.from(shares(aggregation, offsets, fixedLength))
}

/** What a mean of means divides by, to be multiplied with. */
function undoMeans(row: Row, data: number, { reduction, takesWeights }: Form): number {
  if (reduction === "sum") return 1
  return data * (takesWeights ? sampledTokens([row]) : row.tokens.length - 1)
}

function weightsOf(row: Row, { takesWeights }: Form): { readonly weights?: Float32Array } {
  return takesWeights ? { weights: ones(row) } : {}
}

function ones({ tokens, spans }: Row): Float32Array {
  const result = new Float32Array(tokens.length - 1)
  for (const { start, length } of spans) result.fill(1, start - 1, start - 1 + length)
  return result
}

/** Of each sampled token, in its target's place: [tokens - 1], 0 elsewhere. */
function scattered({ tokens, spans }: Row, values: ArrayLike<number>, of: (value: number) => number): Float32Array {
  const result = new Float32Array(tokens.length - 1)
  let at = 0
  for (const { start, length } of spans) for (let i = 0; i < length; i++) result[start - 1 + i] = of(values[at++]!)
  return result
}

function split(rows: readonly Row[], values: Float32Array): Float32Array[] {
  let end = 0
  return rows.map((row) => {
    const start = end
    end += sampledTokens([row])
    return values.subarray(start, end)
  })
}

function advantageOf({ advantage }: Span, i: number): number {
  if (advantage === undefined) throw lacks("advantage")
  return typeof advantage === "number" ? advantage : advantage[i]!
}

function known(span: Span, name: "logProbs"): Float32Array {
  const values = span[name]
  if (!values) throw lacks(name)
  return values
}

const lacks = (name: string) =>
  new GigpoError("BAD_ARGUMENT", `A span has no ${name}, which the loss needs: give every span one.`)
