import { isInt32Array } from "node:util/types"
import { architectures, families, fixedByFamily } from "../model-files/families.ts"
import type { ModelConfig } from "../model-files/model-config.ts"
import { checkArguments, type KeysOf } from "../options/arguments.ts"
import { GigpoError } from "../util/errors.ts"
import type { AdamWStep, ClippedSurrogate, ValueLoss } from "./engine.ts"

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
  otherRotary: true,
  layerTable: true,
  gate: true,
  normOffset: true,
  branchNorms: true,
  queryScalar: true,
  embeddingScale: true,
  tieEmbeddings: true,
  queryKeyValueBias: true,
  queryKeyNorm: true,
  maxPositions: true,
}

/** Checks a configuration written in code; `parseModelConfig` checks those of files. Throws `BAD_ARGUMENT`. */
export function checkModelConfig(config: ModelConfig): void {
  checkArguments("The model's configuration", config, modelKeys)
  if (!Object.hasOwn(families, config.architecture))
    throw bad(`architecture is ${String(config.architecture)}; it must be one of ${architectures.join(", ")}`)
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
    throw bad("maxPositions is 1; it must be at least 2, for one token of the prompt and one of the completion")
  for (const name of ["rmsNormEpsilon", "ropeTheta"] as const) {
    if (!(config[name] > 0 && Number.isFinite(config[name])))
      throw bad(`${name} is ${config[name]}; it must be positive`)
  }
  const { heads, keyValueHeads, headSize, layerTable, layers, otherRotary = [] } = config
  if (layerTable && layerTable.length !== layers)
    throw bad(`layerTable has ${layerTable.length} entries, but there are ${layers} layers`)
  const tables = otherRotary.length > 0 ? `are the tables 0 to ${otherRotary.length}` : "is the table 0"
  for (const { window, rope } of layerTable ?? []) {
    if (!Number.isSafeInteger(window) || window < 0)
      throw bad(`A window of layerTable is ${window}; it must be a whole number, 0 for none`)
    if (rope !== "none" && !(Number.isSafeInteger(rope) && rope >= 0 && rope <= otherRotary.length))
      throw bad(`A rope of layerTable is ${rope}; there ${tables}, or "none"`)
  }
  checkForm(config)
  if (heads % keyValueHeads !== 0) throw bad(`heads (${heads}) must be a multiple of keyValueHeads (${keyValueHeads})`)
  if (headSize % 2 !== 0) throw bad(`headSize is ${headSize}; rotary positions need it to be even`)
}

/** Checks that the layers have the form of the architecture, the only one that its config.json can describe. */
function checkForm(config: ModelConfig): void {
  const { architecture, queryScalar, otherRotary = [] } = config
  const fixed: Partial<ModelConfig> = fixedByFamily(config)
  for (const name of ["gate", "normOffset", "branchNorms", "embeddingScale"] as const)
    if (config[name] !== fixed[name])
      throw bad(`${name} is ${config[name]}; in a ${architecture} model it must be ${fixed[name] ?? "left out"}`)
  const { localRopeTheta, queryScalar: scalar } = families[architecture]
  if ((queryScalar === undefined) !== (scalar === undefined) || !((queryScalar ?? 1) > 0))
    throw bad(
      `queryScalar is ${queryScalar}; ${scalar === undefined ? `${architecture} models have none` : "it must be positive"}`,
    )
  const tables = localRopeTheta === undefined ? 0 : 1
  if (otherRotary.length !== tables)
    throw bad(`otherRotary has ${otherRotary.length} entries; in a ${architecture} model it must have ${tables}`)
  for (const { ropeTheta, ropeScaling } of otherRotary)
    if (!(ropeTheta > 0 && Number.isFinite(ropeTheta)) || ropeScaling)
      throw bad("An entry of otherRotary must have a positive ropeTheta, and no ropeScaling")
}

/** Checks an integer of at least 1. Throws `BAD_ARGUMENT`. */
export function checkWhole(value: number, name: string): void {
  if (!(Number.isSafeInteger(value) && value >= 1))
    throw bad(`${name} is ${value}; it must be an integer of at least 1`)
}

function bad(what: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", `${what}.`)
}
