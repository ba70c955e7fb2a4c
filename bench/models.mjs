// Models of the benchmarks, with random weights, and their arguments for the PyTorch programs.
import { NativePolicy, Random } from "gigpo"

const common = {
  architecture: "Qwen2",
  rmsNormEpsilon: 1e-6,
  ropeTheta: 1e6,
  tieEmbeddings: true,
  queryKeyValueBias: true,
  queryKeyNorm: false,
  maxPositions: 512,
}

export const models = {
  "1M": {
    config: {
      ...common,
      hiddenSize: 128,
      layers: 5,
      heads: 4,
      keyValueHeads: 2,
      headSize: 32,
      intermediateSize: 352,
      vocabularySize: 512,
    },
    rows: 16,
  },
  "25M": {
    config: {
      ...common,
      hiddenSize: 512,
      layers: 8,
      heads: 8,
      keyValueHeads: 4,
      headSize: 64,
      intermediateSize: 1408,
      vocabularySize: 2048,
    },
    rows: 8,
  },
}

/** Model with the shape of Qwen2.5 0.5B. */
export const halfBillion = {
  ...common,
  hiddenSize: 896,
  layers: 24,
  heads: 14,
  keyValueHeads: 2,
  headSize: 64,
  intermediateSize: 4864,
  vocabularySize: 151936,
}

export async function openModel(name, options = {}) {
  return await NativePolicy.create(models[name].config, new Random(0), options)
}

export function peerFlags(config) {
  const { hiddenSize, layers, heads, keyValueHeads, intermediateSize, vocabularySize } = config
  const flags = {
    hidden: hiddenSize,
    layers,
    heads,
    "kv-heads": keyValueHeads,
    intermediate: intermediateSize,
    vocabulary: vocabularySize,
  }
  return Object.entries(flags).flatMap(([flag, value]) => [`--${flag}`, String(value)])
}

/** Random tokens. */
export function randomTokens(random, count, vocabulary) {
  return Int32Array.from({ length: count }, () => random.below(vocabulary))
}
