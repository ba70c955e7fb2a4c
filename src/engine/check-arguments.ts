import { isInt32Array } from "node:util/types"
import type { ModelConfig } from "../model-files/model-config.ts"
import { checkArguments, type KeysOf } from "../options/arguments.ts"
import { GigpoError } from "../util/errors.ts"
import type { AdamWStep, ClippedSurrogate, ValueLoss } from "./engine.ts"

// What is refused before it reaches native code, with sentences.

/** The shortest sequence: one token of its prompt and one of its reply. */
export const leastPositions = 2

/** Float32 must hold logits / temperature. */
export const lowestTemperature = 1e-6

export function checkTokens(tokens: Int32Array, name: string, vocabularySize: number): void {
  if (!isInt32Array(tokens)) throw bad(`${name} must be an Int32Array of token ids`)
  if (tokens.length === 0) throw bad(`${name} is empty; give at least one token`)
  const wrong = tokens.find((token) => token < 0 || token >= vocabularySize)
  if (wrong !== undefined)
    throw bad(`${name} holds token ${wrong}, outside the model's vocabulary of ${vocabularySize}`)
}

export function checkTemperature(temperature: number | undefined): void {
  if (temperature !== undefined && !(temperature >= lowestTemperature && Number.isFinite(temperature)))
    throw bad(`temperature is ${temperature}; it must be at least ${lowestTemperature}`)
}

/** While sampling, 0 stands for the most likely token. */
export function checkSamplingTemperature(temperature: number): void {
  if (temperature !== 0 && !(temperature >= lowestTemperature && Number.isFinite(temperature)))
    throw bad(
      `temperature is ${temperature}; it must be 0, for the most likely token, or at least ${lowestTemperature}`,
    )
}

/** The numbers; its names are the engine's to know. */
export function checkSurrogate(loss: ClippedSurrogate): void {
  for (const name of ["clipLow", "clipHigh", "klWeight"] as const) {
    if (!(loss[name] >= 0 && Number.isFinite(loss[name])))
      throw bad(`${name} is ${loss[name]}; it must be a number of at least 0`)
  }
  if (!Number.isFinite(loss.entropyWeight)) throw bad(`entropyWeight is ${loss.entropyWeight}; it must be a number`)
  if (!(loss.clipDual > 1)) throw bad(`clipDual is ${loss.clipDual}; it must be above 1 (Infinity turns it off)`)
  checkFixedLength(loss)
}

/** A length that is fixed belongs to the one aggregation that divides by it. */
export function checkFixedLength(loss: {
  readonly aggregation: string
  readonly fixedLength?: number | undefined
}): void {
  const { aggregation, fixedLength } = loss
  const divides = aggregation === "sequence-mean-fixed-length"
  if (divides && fixedLength === undefined)
    throw bad(`The aggregation "${aggregation}" needs fixedLength, the tokens that it divides every sequence by`)
  if (fixedLength === undefined) return
  if (!divides)
    throw bad(`fixedLength is of the aggregation "sequence-mean-fixed-length", not of "${aggregation}"; leave it out`)
  checkWhole(fixedLength, "fixedLength")
}

export function checkValueLoss({ kind, clip }: ValueLoss): void {
  if (kind !== "clipped-value") throw bad(`A critic's loss is of kind ${JSON.stringify(kind)}; give "clipped-value"`)
  if (!(clip > 0)) throw bad(`clip is ${clip}; it must be above 0 (Infinity turns it off)`)
}

export function checkAdamW(step: { readonly [Key in keyof AdamWStep]-?: NonNullable<AdamWStep[Key]> }): void {
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

const modelKeys: KeysOf<ModelConfig> = {
  architecture: true,
  vocabularySize: true,
  hiddenSize: true,
  intermediateSize: true,
  layers: true,
  heads: true,
  keyValueHeads: true,
  headSize: true,
  rmsNormEpsilon: true,
  ropeTheta: true,
  ropeScaling: true,
  tieEmbeddings: true,
  queryKeyValueBias: true,
  queryKeyNorm: true,
  maxPositions: true,
}

/** For a configuration that was written by hand: `parseModelConfig` has checked those of files. */
export function checkModelConfig(config: ModelConfig): void {
  checkArguments("The model's configuration", config, modelKeys)
  const sizes = [
    "vocabularySize",
    "hiddenSize",
    "intermediateSize",
    "layers",
    "heads",
    "keyValueHeads",
    "headSize",
    "maxPositions",
  ] as const
  for (const name of sizes) checkWhole(config[name], name)
  if (config.maxPositions < leastPositions)
    throw bad("maxPositions is 1; the shortest sequence has two tokens, one of its prompt and one of its reply")
  for (const name of ["rmsNormEpsilon", "ropeTheta"] as const) {
    if (!(config[name] > 0 && Number.isFinite(config[name])))
      throw bad(`${name} is ${config[name]}; it must be positive`)
  }
  const { heads, keyValueHeads, headSize } = config
  if (heads % keyValueHeads !== 0) throw bad(`heads (${heads}) must be a multiple of keyValueHeads (${keyValueHeads})`)
  if (headSize % 2 !== 0) throw bad(`headSize is ${headSize}; rotary positions need it to be even`)
}

export function checkWhole(value: number, name: string): void {
  if (!(Number.isSafeInteger(value) && value >= 1))
    throw bad(`${name} is ${value}; it must be a whole number of at least 1`)
}

function bad(what: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", `${what}.`)
}
