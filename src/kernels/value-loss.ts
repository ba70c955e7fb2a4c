import type { Column } from "../engine/rows.ts"
import { type NativeValueLoss, native } from "../native/native.ts"
import { checkArguments, checkList, type KeysOf } from "../options/arguments.ts"
import { GigpoError } from "../util/errors.ts"

/** Tokens in any order; arrays are [tokens], and exact where they are Float64Arrays. */
export interface ValueLossInput {
  /** What the critic predicts. */
  readonly values: Column
  readonly returns: Column
  /** What it foretold before its updates; may be absent where `clip` is Infinity. */
  readonly oldValues?: Column
  /** 1 for a token that counts, 0 for one that does not. Default: all count. */
  readonly mask?: Column
}

/** Options of `valueLoss`. */
export interface ValueLossOptions {
  /** How far from `oldValues` a value may count as moved. Default Infinity, which turns it off. */
  readonly clip?: number | undefined
}

const inputKeys: KeysOf<ValueLossInput> = { values: true, returns: true, oldValues: true, mask: true }
const optionKeys: KeysOf<ValueLossOptions> = { clip: true }

export type { NativeValueLoss as ValueLossReport }

/**
 * PPO's clipped value loss (½ max((v - R)², (c - R)²), c = v held to old v ± clip; the mean over tokens) and its gradient by the
 * values: what a critic is trained by. Computed in float64.
 *
 * @throws GigpoError `BAD_ARGUMENT` where arrays are not of one length, or a finite clip has no `oldValues`.
 */
export function valueLoss(input: ValueLossInput, options: ValueLossOptions = {}): NativeValueLoss {
  checkArguments("valueLoss: the input", input, inputKeys)
  checkArguments("valueLoss", options, optionKeys)
  for (const name of ["values", "returns"] as const) checkList(`valueLoss: ${name}`, input[name])
  const { clip = Number.POSITIVE_INFINITY } = options
  const { values, returns, oldValues, mask } = input
  for (const name of ["returns", "oldValues", "mask"] as const) {
    const length = input[name]?.length ?? values.length
    if (length !== values.length) throw bad(`${name} must be as long as values (${values.length}), not ${length}`)
  }
  if (!(clip > 0)) throw bad(`clip is ${clip}; it must be above 0 (Infinity turns it off)`)
  if (clip !== Number.POSITIVE_INFINITY && oldValues === undefined) throw bad("a finite clip needs oldValues")
  const exact = {
    values: Float64Array.from(values),
    returns: Float64Array.from(returns),
    ...(oldValues && { oldValues: Float64Array.from(oldValues) }),
    ...(mask && { mask: Float64Array.from(mask) }),
  }
  return native().valueLoss(exact, clip)
}

function bad(what: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", `${what}.`)
}
