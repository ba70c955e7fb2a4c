import type { Datum } from "../../tinker/datum.ts"
import type { ClippedSurrogate } from "../engine.ts"
import { type Sequence, sampledTokens } from "../sequence.ts"
import { shares } from "../shares.ts"
import type { TokenTable } from "../token-table.ts"
import type { LossForm } from "./capabilities.ts"

// Converts sequences to the data of the API. The input is all tokens but the last, and the target at each position is the next
// token: the first token of a segment, at `start` of the sequence, is target start - 1.

/** Loss in the form of the API. */
export interface RemoteLoss {
  readonly loss: string
  readonly config: Readonly<Record<string, number>>
  readonly data: readonly Datum[]
}

/** Returns the datum of a sequence with columns of numbers, [targets] each. */
export function datumOf({ tokens }: Sequence, columns: Readonly<Record<string, Float32Array>>): Datum {
  const targets = tokens.slice(1)
  return {
    tokens: tokens.slice(0, -1),
    inputs: new Map<string, Int32Array | Float32Array>([["target_tokens", targets], ...Object.entries(columns)]),
  }
}

/** Returns the data that score sampled tokens: a cross-entropy with weight 1 for each. */
export function scoringData(rows: readonly Sequence[]): Datum[] {
  return rows.map((row) => datumOf(row, { weights: ones(row) }))
}

/** Selects the sampled tokens from a result per target: segments in order. */
export function ofSegments({ segments }: Sequence, targets: Float32Array): Float32Array {
  const values = new Float32Array(segments.reduce((sum, { length }) => sum + length, 0))
  let end = 0
  for (const { start, length } of segments) {
    values.set(targets.subarray(start - 1, start - 1 + length), end)
    end += length
  }
  return values
}

/**
 * Returns the loss Σ coefficient · log p, which has the same gradient as any loss with these derivatives.
 *
 * @param coefficients d loss / d log p, [sampled tokens of all sequences]
 * @param now current log-probabilities, [sampled tokens] per sequence; needed for "importance_sampling", so that its ratio is 1
 */
export function linearLoss(
  { sequences, sequenceOffsets }: TokenTable,
  coefficients: Float32Array,
  route: "cross_entropy" | "importance_sampling",
  form: LossForm,
  now?: readonly Float32Array[],
): RemoteLoss {
  const own = (r: number) => coefficients.subarray(sequenceOffsets[r]!, sequenceOffsets[r + 1]!)
  if (route === "cross_entropy") {
    const data = sequences.map((row, r) => datumOf(row, { weights: scattered(row, own(r), (value) => -value) }))
    return { loss: route, config: {}, data }
  }
  const data = sequences.map((row, r) => {
    const scale = undoMeans(row, sequences.length, form)
    return datumOf(row, {
      logprobs: scattered(row, now![r]!, (value) => value),
      advantages: scattered(row, own(r), (value) => -value * scale),
      ...weightsOf(row, form),
    })
  })
  return { loss: route, config: {}, data }
}

/** Returns the coefficients of the negative mean log-probability of the sampled tokens. */
export function sftCoefficients(rows: readonly Sequence[]): Float32Array {
  const tokens = sampledTokens(rows)
  return new Float32Array(tokens).fill(-1 / tokens)
}

/**
 * Returns PPO's clipped surrogate. Shares and divisors are multiplied into the advantages. That is exact, since the loss is
 * proportional to the advantages.
 */
export function surrogateLoss(table: TokenTable, loss: ClippedSurrogate, form: LossForm): RemoteLoss {
  const { sequences, offsets, sequenceOffsets } = table
  const { aggregation, unit = "completion", fixedLength, clipLow, clipHigh } = loss
  const share = Float32Array.from(shares(aggregation, unit === "conversation" ? sequenceOffsets : offsets, fixedLength))
  const logProbs = table.column(["oldLogProbs", "logProbs"])
  const advantages = table.fill(new Float64Array(table.tokens), "advantage")
  const data = sequences.map((row, r) => {
    const [start, end] = [sequenceOffsets[r]!, sequenceOffsets[r + 1]!]
    const scale = undoMeans(row, sequences.length, form)
    const weighed = advantages.subarray(start, end).map((advantage, t) => scale * share[start + t]! * advantage)
    return datumOf(row, {
      logprobs: scattered(row, logProbs.subarray(start, end), (value) => value),
      advantages: scattered(row, weighed, (value) => value),
      ...weightsOf(row, form),
    })
  })
  const config = { clip_low_threshold: 1 - clipLow, clip_high_threshold: 1 + clipHigh }
  return { loss: "ppo", config, data }
}

/** Returns the indices of data with a gradient other than 0. */
export function busy({ data }: RemoteLoss): number[] {
  const learns = ({ inputs }: Datum) =>
    (inputs.get("advantages") ?? inputs.get("weights")!).some((value) => value !== 0)
  return [...data.keys()].filter((index) => learns(data[index]!))
}

/** Merges the results of some sequences into a column of all, [sampled tokens of all sequences]; NaN for the others. */
export function gathered(
  rows: readonly Sequence[],
  kept: readonly number[],
  results: readonly Float32Array[],
): Float32Array {
  const found = new Float32Array(sampledTokens(rows)).fill(Number.NaN)
  let [at, next] = [0, 0]
  for (const [index, row] of rows.entries()) {
    const values = kept[next] === index ? ofSegments(row, results[next++]!) : undefined
    if (values) found.set(values, at)
    at += values?.length ?? sampledTokens([row])
  }
  return found
}

/** Returns a loss with some of its data, rescaled so that each datum keeps its share. */
export function only({ data, ...rest }: RemoteLoss, kept: readonly number[], { reduction }: LossForm): RemoteLoss {
  const scale = reduction === "sum" ? 1 : kept.length / data.length
  const scaled = ({ tokens, inputs }: Datum): Datum => {
    const advantages = (inputs.get("advantages") as Float32Array).map((value) => scale * value)
    return { tokens, inputs: new Map(inputs).set("advantages", advantages) }
  }
  return { ...rest, data: kept.map((index) => (scale === 1 ? data[index]! : scaled(data[index]!))) }
}

/** Returns the divisor of a mean of means, by which advantages are multiplied to cancel it. */
function undoMeans(row: Sequence, data: number, { reduction, tokenWeights }: LossForm): number {
  if (reduction === "sum") return 1
  return data * (tokenWeights ? sampledTokens([row]) : row.tokens.length - 1)
}

function weightsOf(row: Sequence, { tokenWeights }: LossForm): { readonly weights?: Float32Array } {
  return tokenWeights ? { weights: ones(row) } : {}
}

function ones({ tokens, segments }: Sequence): Float32Array {
  const result = new Float32Array(tokens.length - 1)
  for (const { start, length } of segments) result.fill(1, start - 1, start - 1 + length)
  return result
}

/** Returns values of sampled tokens at the positions of their targets, [tokens - 1]; 0 elsewhere. */
function scattered(
  { tokens, segments }: Sequence,
  values: ArrayLike<number>,
  of: (value: number) => number,
): Float32Array {
  const result = new Float32Array(tokens.length - 1)
  let at = 0
  for (const { start, length } of segments) for (let i = 0; i < length; i++) result[start - 1 + i] = of(values[at++]!)
  return result
}
