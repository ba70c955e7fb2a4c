import { availableParallelism, totalmem } from "node:os"
import { GigpoError } from "../../errors.ts"
import type { ModelConfig } from "../../model-files/model-config.ts"
import { type NativeDeviceReport, type NativeEngineOptions, type NativeMemoryPlan, native } from "../../native.ts"
import { checkModelConfig, checkWhole } from "../check-arguments.ts"

export interface NativePolicyOptions {
  /** "auto" (the default) takes the first NVIDIA GPU that can be used, else the CPU. "cuda" without one fails with the reason. */
  readonly device?: "auto" | "cpu" | "cuda"
  /**
   * Numbers that are computed with; what is trained is kept in float32 beside them. Default "bfloat16" on a GPU and "float32" on
   * the CPU, which has no other.
   */
  readonly precision?: "float32" | "bfloat16"
  /** Threads that compute. Default: every core. */
  readonly threads?: number
  /** Longest sequence, prompt and reply together. Default: the model's own limit. */
  readonly maxPositions?: number
  /** Tokens trained at once; more takes more memory and changes nothing else. Default 2048, on a GPU 16384. */
  readonly microBatchTokens?: number
  /**
   * Memory for keys and values while sampling, in bytes. Default 256 MiB, on a GPU what 256 sequences of 4096 tokens take, or
   * what is left.
   */
  readonly cacheBytes?: number
  /**
   * What the backward pass computes again instead of keeping it: nothing, the inputs of the multiplications, also the inside of
   * the feed-forward network, or the whole layer. Each saves memory and costs time, up to a third of training; the results are
   * the same. Default "auto": the least that fits.
   */
  readonly recompute?: "auto" | "none" | "norms" | "mlp" | "block"
  /** How AdamW's moments are kept; bfloat16 halves their memory and rounds them. Default "float32". */
  readonly moments?: "float32" | "bfloat16"
  /** Train a low-rank adapter (LoRA) and leave the model as it is. Default: all weights are trained. */
  readonly lora?: LoraOptions
  /** False for a policy that only samples: no memory for training is asked for, and it cannot be trained. Default true. */
  readonly training?: boolean
  /** Whether a frozen copy will be needed (`freezeReference`), so that its memory is counted. Default false. */
  readonly reference?: boolean
}

/** y = W x + (alpha / rank) · B A x beside every projection (q, k, v, o, gate, up, down), as PEFT names and stores it. */
export interface LoraOptions {
  /** Rows of A; 16 to 64 are usual. */
  readonly rank: number
  /** The pair's output is scaled by alpha / rank. Default 2 × rank. */
  readonly alpha?: number
  /** Seeds A's first values where the model is opened from files. Default 0. */
  readonly seed?: number
}

/** Memory in bytes that a policy takes, part by part, and in words (`text`). */
export type MemoryPlan = NativeMemoryPlan

/** An adapter's size. */
export interface AdapterConfig {
  readonly rank: number
  readonly alpha: number
}

/**
 * What a policy of this model and these options would take, without allocating it. Where `options.device` is "cuda" no GPU need
 * be there.
 *
 * @param availableBytes - memory of the device. Default: as much as is asked for.
 * @throws GigpoError `OUT_OF_MEMORY` with settings that would fit, where more than `availableBytes` are needed.
 */
export function memoryPlan(
  config: ModelConfig,
  options: NativePolicyOptions = {},
  availableBytes: number = Number.MAX_SAFE_INTEGER,
): MemoryPlan {
  checkModelConfig(config)
  checkPolicyOptions(options)
  const positions = { ...config, maxPositions: options.maxPositions ?? config.maxPositions }
  return native().memoryPlan(positions, resolvePolicyOptions(options), Math.floor(availableBytes))
}

/** Memory of the device that the options choose; undefined for a GPU that is not there. */
export function deviceMemory(options: NativePolicyOptions): number | undefined {
  return chooseDevice(options) === "cpu" ? totalmem() : native().deviceReport().devices[0]?.memoryBytes
}

export function chooseDevice({ device = "auto" }: NativePolicyOptions): "cpu" | "cuda" {
  if (device !== "auto") return device
  return native().deviceReport().devices.length > 0 ? "cuda" : "cpu"
}

/** Options as the engine takes them. */
export function resolvePolicyOptions(options: NativePolicyOptions): NativeEngineOptions {
  const device = chooseDevice(options)
  const { precision = device === "cuda" ? "bfloat16" : "float32" } = options
  if (device === "cpu" && precision !== "float32") {
    throw new GigpoError(
      "BAD_ARGUMENT",
      `precision is "${precision}", but the CPU computes in float32 alone: leave precision out, or use device "cuda".`,
    )
  }
  return {
    device,
    precision,
    threads: options.threads ?? availableParallelism(),
    microBatchTokens: options.microBatchTokens ?? (device === "cuda" ? 16384 : 2048),
    cacheBytes: options.cacheBytes ?? 0,
    recompute: options.recompute ?? "auto",
    moments: options.moments ?? "float32",
    loraRank: options.lora?.rank ?? 0,
    loraAlpha: options.lora ? adapterConfig(options.lora).alpha : 0,
    trained: options.training ?? true,
    reference: options.reference ?? false,
  }
}

export function adapterConfig({ rank, alpha = 2 * rank }: LoraOptions): AdapterConfig {
  return { rank, alpha }
}

/** Refuses a GPU that cannot be used, with the reason. */
export function checkDevice(
  device: "cpu" | "cuda",
  report: () => NativeDeviceReport = () => native().deviceReport(),
): void {
  if (device === "cpu") return
  const { unavailable, devices } = report()
  if (devices.length > 0) return
  const reason = unavailable?.message ?? "No CUDA device was found."
  throw new GigpoError("DEVICE_UNAVAILABLE", `${reason} Use device "cpu".`)
}

const choices = {
  device: ["auto", "cpu", "cuda"],
  precision: ["float32", "bfloat16"],
  recompute: ["auto", "none", "norms", "mlp", "block"],
  moments: ["float32", "bfloat16"],
} as const

export function checkPolicyOptions(options: NativePolicyOptions): void {
  for (const name of ["threads", "maxPositions", "microBatchTokens", "cacheBytes"] as const) {
    if (options[name] !== undefined) checkWhole(options[name], name)
  }
  for (const [name, allowed] of Object.entries(choices)) {
    const value = options[name as keyof typeof choices]
    if (value !== undefined && !(allowed as readonly string[]).includes(value)) {
      const listed = allowed.map((choice) => `"${choice}"`).join(", ")
      throw new GigpoError("BAD_ARGUMENT", `${name} is ${JSON.stringify(value)}; give one of ${listed}.`)
    }
  }
  if (options.lora) {
    const { rank, alpha } = adapterConfig(options.lora)
    checkWhole(rank, "lora.rank")
    if (!(alpha > 0 && Number.isFinite(alpha)))
      throw new GigpoError("BAD_ARGUMENT", `lora.alpha is ${alpha}; it must be a positive number.`)
  }
}
