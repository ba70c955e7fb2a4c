import type { LoraOptions, NativePolicyOptions } from "../../engine/native/options.ts"
import type { InitializeOptions } from "../../training/initialize.ts"
import type { CloneOptions, TrainOptions } from "../../training/options.ts"

/** A configuration file with every default filled in. Paths are relative to the working directory. */
export interface Config extends Omit<NativePolicyOptions, "training" | "reference" | "lora"> {
  /** Hugging Face model folder: config.json, safetensors, tokenizer. */
  readonly model: string
  /** Which environment; its own options stand beside the name. */
  readonly environment: { readonly name: string } & Readonly<Record<string, unknown>>
  /** Folder of the run: metrics, checkpoints and the trained model. Default: runs/ and the environment's name. */
  readonly run: string
  /** The root of every random number. Default 0. */
  readonly seed: number
  /** Train a low-rank adapter (LoRA) and leave the model as it is. Default: all weights are trained. */
  readonly lora?: Omit<LoraOptions, "seed">
  readonly training: Omit<TrainOptions, "seed">
  readonly clone: Omit<CloneOptions, "seed">
  readonly initialize: Omit<InitializeOptions, "seed">
}

/** The part that opens a policy. */
export function policyOptions(config: Config): NativePolicyOptions {
  const { device, precision, threads, maxPositions, microBatchTokens, cacheBytes, recompute, moments, lora } = config
  return {
    ...(device !== undefined && { device }),
    ...(precision !== undefined && { precision }),
    ...(threads !== undefined && { threads }),
    ...(maxPositions !== undefined && { maxPositions }),
    ...(microBatchTokens !== undefined && { microBatchTokens }),
    ...(cacheBytes !== undefined && { cacheBytes }),
    ...(recompute !== undefined && { recompute }),
    ...(moments !== undefined && { moments }),
    ...(lora !== undefined && { lora: { ...lora, seed: config.seed } }),
  }
}

/** The same for training, whose loss may ask for a frozen reference. */
export function trainingOptions(config: Config): NativePolicyOptions {
  const { klWeight = 0 } = config.training.loss ?? {}
  return { ...policyOptions(config), ...(klWeight !== 0 && { reference: true }) }
}
