import { isInt32Array } from "node:util/types"
import { GigpoError } from "../util/errors.ts"
import type { AdamWParameters, ClippedSurrogate, ValueLoss } from "./engine.ts"

// Checks of arguments before native code is called.

/** Minimum tokens of a sequence: one of the prompt and one of the completion. */
export const leastPositions = 2

/** Minimum temperature above 0, so that logits / temperature stays within float32. */
export const lowestTemperature = 1e-6

/** Checks a non-empty Int32Array of token ids. Throws `BAD_ARGUMENT`. */
export function checkTokens(tokens: Int32Array, name: string, vocabularySize: number): void {
  if (!isInt32Array(tokens)) throw bad(`${name} must be an Int32Array of token ids`)
  if (tokens.length === 0) throw bad(`${name} is empty; give at least one token`)
  const wrong = tokens.find((token) => token < 0 || token >= vocabularySize)
  if (wrong !== undefined)
    throw bad(`${name} contains token ${wrong}, outside the model's vocabulary of ${vocabularySize} tokens`)
}

/** Checks a temperature of training, which must be above 0. Throws `BAD_ARGUMENT`. */
export function checkTemperature(temperature: number | undefined): void {
  if (temperature !== undefined && !(temperature >= lowestTemperature && Number.isFinite(temperature)))
    throw bad(`temperature is ${temperature}; it must be at least ${lowestTemperature}`)
}

/** Checks a sampling temperature, which may be 0 for greedy decoding. Throws `BAD_ARGUMENT`. */
export function checkSamplingTemperature(temperature: number): void {
  if (temperature !== 0 && !(temperature >= lowestTemperature && Number.isFinite(temperature)))
    throw bad(`temperature is ${temperature}; it must be 0 (greedy decoding) or at least ${lowestTemperature}`)
}

/** Checks the numbers of a loss. Each engine checks the names. Throws `BAD_ARGUMENT`. */
export function checkSurrogate(loss: ClippedSurrogate): void {
  for (const name of ["clipLow", "clipHigh", "klWeight"] as const) {
    if (!(loss[name] >= 0 && Number.isFinite(loss[name])))
      throw bad(`${name} is ${loss[name]}; it must be a number of at least 0`)
  }
  if (!Number.isFinite(loss.entropyWeight)) throw bad(`entropyWeight is ${loss.entropyWeight}; it must be a number`)
  if (!(loss.clipDual > 1)) throw bad(`clipDual is ${loss.clipDual}; it must be above 1 (Infinity turns it off)`)
  checkFixedLength(loss)
}

/** Checks that `fixedLength` is given for "sequence-mean-fixed-length", and for no other aggregation. Throws `BAD_ARGUMENT`. */
export function checkFixedLength(loss: {
  readonly aggregation: string
  readonly fixedLength?: number | undefined
}): void {
  const { aggregation, fixedLength } = loss
  const divides = aggregation === "sequence-mean-fixed-length"
  if (divides && fixedLength === undefined)
    throw bad(
      `The aggregation "${aggregation}" needs fixedLength, the number of tokens that each sequence is divided by`,
    )
  if (fixedLength === undefined) return
  if (!divides)
    throw bad(
      `fixedLength applies only to the aggregation "sequence-mean-fixed-length", not to "${aggregation}"; remove it`,
    )
  checkWhole(fixedLength, "fixedLength")
}

/** Checks the loss of a critic. Throws `BAD_ARGUMENT`. */
export function checkValueLoss({ kind, clip }: ValueLoss): void {
  if (kind !== "clipped-value") throw bad(`The loss of a critic has kind ${JSON.stringify(kind)}; use "clipped-value"`)
  if (!(clip > 0)) throw bad(`clip is ${clip}; it must be above 0 (Infinity turns it off)`)
}

/** Checks complete AdamW options. Throws `BAD_ARGUMENT`. */
export function checkAdamW(
  step: { readonly [Key in keyof AdamWParameters]-?: NonNullable<AdamWParameters[Key]> },
): void {
  for (const name of ["learningRate", "weightDecay"] as const) {
    if (!(step[name] >= 0 && Number.isFinite(step[name])))
      throw bad(`${name} is ${step[name]}; it must be a number of at least 0`)
  }
  for (const name of ["beta1", "beta2"] as const) {
    if (!(step[name] >= 0 && step[name] < 1)) throw bad(`${name} is ${step[name]}; it must be at least 0 and below 1`)
  }
  if (!(step.epsilon > 0 && Number.isFinite(step.epsilon))) throw bad(`epsilon is ${step.epsilon}; it must be positive`)
  if (!(step.maxGradientNorm > 0))
    throw bad(`maxGradientNorm is ${step.maxGradientNorm}; it must be positive (Infinity turns clipping off)`)
}

/** Checks an integer of at least 1. Throws `BAD_ARGUMENT`. */
export function checkWhole(value: number, name: string): void {
  if (!(Number.isSafeInteger(value) && value >= 1))
    throw bad(`${name} is ${value}; it must be an integer of at least 1`)
}

function bad(what: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", `${what}.`)
}
