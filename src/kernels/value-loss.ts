import type { TokenColumn } from "../engine/sequence.ts"
import { type NativeValueLoss, native } from "../native/native.ts"
import { checkArguments, checkList, type KeysOf } from "../options/arguments.ts"
import { GigpoError } from "../util/errors.ts"

/** Tokens in any order. Arrays are [tokens]; Float64Arrays are used without rounding. */
export interface ValueLossInput {
  /** Predictions of the critic. */
  readonly values: TokenColumn
  /** Returns that the critic should predict. */
  readonly returns: TokenColumn
  /** Predictions before the updates; may be absent if `clip` is Infinity. */
  readonly oldValues?: TokenColumn
  /** Loss mask: 1 for a token that counts, 0 otherwise. Default: all ones. */
  readonly mask?: TokenColumn
}

/** Options of `valueLoss`. */
export interface ValueLossOptions {
  /** Maximum change of a value from `oldValues`. Default Infinity: no clipping. */
  readonly clip?: number | undefined
}

const inputKeys: KeysOf<ValueLossInput> = { values: true, returns: true, oldValues: true, mask: true }
const optionKeys: KeysOf<ValueLossOptions> = { clip: true }

export type { NativeValueLoss as ValueLossReport }

/**
 * Computes PPO's clipped value loss and its gradient with respect to the values, as used to train a critic: the mean
 * over tokens of ½ max((v - R)², (c - R)²), where c is v clipped to old v ± clip. Computed in float64.
 *
 * @throws GigpoError `BAD_ARGUMENT` if arrays differ in length, or a finite clip has no `oldValues`.
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
