import type { NativePolicyOptions } from "../../policy/native-policy.ts"
import type { InitializeOptions } from "../../training/initialize.ts"
import type { CloneOptions, TrainOptions } from "../../training/options.ts"

/** A configuration file with every default filled in. Paths are relative to the working directory. */
export interface Config extends NativePolicyOptions {
  /** Hugging Face model folder: config.json, safetensors, tokenizer. */
  readonly model: string
  /** Which environment; its own options stand beside the name. */
  readonly environment: { readonly name: string } & Readonly<Record<string, unknown>>
  /** Folder of the run: metrics, checkpoints and the trained model. Default: runs/ and the environment's name. */
  readonly run: string
  /** The root of every random number. Default 0. */
  readonly seed: number
  readonly training: Omit<TrainOptions, "seed">
  readonly clone: Omit<CloneOptions, "seed">
  readonly initialize: Omit<InitializeOptions, "seed">
}

/** The part that opens a policy. */
export function policyOptions(config: Config): NativePolicyOptions {
  const { device, threads, maxPositions, microBatchTokens, cacheBytes } = config
  return {
    ...(device !== undefined && { device }),
    ...(threads !== undefined && { threads }),
    ...(maxPositions !== undefined && { maxPositions }),
    ...(microBatchTokens !== undefined && { microBatchTokens }),
    ...(cacheBytes !== undefined && { cacheBytes }),
  }
}
