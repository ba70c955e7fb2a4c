import { checkFixedLength } from "../engine/check-arguments.ts"
import { aggregationField, aggregations, clippedSurrogateFields, lossFields } from "../loss/options.ts"
import { type NativeSurrogateReport, native } from "../native/native.ts"
import { checkArguments, checkList, type KeysOf } from "../options/arguments.ts"
import { fixed, without } from "../options/fixed.ts"
import { readOptions } from "../options/read.ts"
import type { OptionsOf } from "../options/table.ts"
import { GigpoError } from "../util/errors.ts"
import { deviceOf, type KernelDevice } from "./device.ts"

/** Tokens of several rows, one after the other; arrays are [tokens] but for `rows`. */
export interface SurrogateInput {
  readonly logProbs: Float32Array
  readonly oldLogProbs: Float32Array
  readonly advantages: Float32Array
  /** 1 for a token that counts, 0 for one that does not. */
  readonly mask: Float32Array
  /** Length of each row; they sum to the number of tokens. */
  readonly rows: Int32Array
  readonly referenceLogProbs?: Float32Array
}

const inputKeys: KeysOf<SurrogateInput> = {
  logProbs: true,
  oldLogProbs: true,
  advantages: true,
  mask: true,
  rows: true,
  referenceLogProbs: true,
}

/** As in training, but its numbers stay, and there is one more aggregation. */
export const surrogateFields = {
  ...without(fixed(clippedSurrogateFields), "skipZeroAdvantage"),
  ...without(fixed(lossFields), "entropyWeight"),
  aggregation: aggregationField([...aggregations, "sequence-mean-token-sum-norm"]),
}

/** Besides the aggregations of training: the sum over tokens divided by the length of the longest row. */
export interface SurrogateOptions extends OptionsOf<typeof surrogateFields> {
  /** Default "auto", which is the CPU. */
  readonly device?: KernelDevice | undefined
}

export type { NativeSurrogateReport as SurrogateReport }

/**
 * PPO's clipped surrogate (dual clip, KL term) and its gradient by the log-probabilities. Options as in training.
 *
 * @throws GigpoError `DEVICE_UNAVAILABLE` where "cuda" is asked for and there is none.
 */
export function policyLoss(arrays: SurrogateInput, given: SurrogateOptions = {}): NativeSurrogateReport {
  checkArguments("policyLoss: the input", arrays, inputKeys)
  const input = { ...arrays } // what is checked is what is read: a getter is asked once
  checkArguments("policyLoss", given)
  for (const name of ["logProbs", "oldLogProbs", "advantages", "mask", "rows"] as const)
    checkList(`policyLoss: ${name}`, input[name])
  const { device, ...options } = given
  const tokens = input.logProbs.length
  for (const name of ["oldLogProbs", "advantages", "mask", "referenceLogProbs"] as const) {
    const values = input[name]
    if (values !== undefined && values.length !== tokens) throw bad(`${name} must be as long as logProbs (${tokens})`)
  }
  const sum = input.rows.reduce((total, length) => total + length, 0)
  if (sum !== tokens || input.rows.some((length) => length < 0))
    throw bad(`rows must hold the lengths of the rows, summing to ${tokens}, not ${sum}`)
  const complete = readOptions("policyLoss", options, surrogateFields)
  checkFixedLength(complete)
  if (complete.klWeight !== 0 && input.referenceLogProbs === undefined) throw bad("a klWeight needs referenceLogProbs")
  return native().clippedSurrogate(input, complete, deviceOf(device))
}

function bad(what: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", `${what}.`)
}
