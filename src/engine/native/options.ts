import { GigpoError } from "../../errors.ts"
import type { AdapterConfig } from "../../model-files/adapter-files.ts"
import type { ModelConfig } from "../../model-files/model-config.ts"
import { type NativeDeviceReport, type NativeEngineOptions, type NativeMemoryPlan, native } from "../../native.ts"
import { flag, number, oneOf, optionalGroup, required, text, whole } from "../../options/field.ts"
import { readOptions } from "../../options/read.ts"
import type { OptionsOf } from "../../options/table.ts"
import { checkModelConfig, leastPositions } from "../check-arguments.ts"

/** y = W x + (alpha / rank) · B A x beside every projection (q, k, v, o, gate, up, down), as PEFT names and stores it. */
export const loraFields = {
  rank: required(whole(undefined, "Rows of A; 16 to 64 are usual.", { least: 1 })),
  alpha: number(undefined, "The pair's output is scaled by alpha / rank.", { above: 0, otherwise: "2 × rank" }),
  seed: whole(0, "Seeds A's first values where the model is opened from files.", { least: 0 }),
}

/** Tokens and positions are counted in 32 bits. */
const mostTokens = 2 ** 31 - 1

export const nativePolicyFields = {
  device: oneOf(
    "auto",
    ["auto", "cpu", "cuda"],
    '"auto" takes the first NVIDIA GPU that can be used, else the CPU. "cuda" without one fails with the reason.',
  ),
  precision: oneOf(
    undefined,
    ["float32", "bfloat16"],
    "Numbers that are computed with; what is trained is kept in float32 beside them, and sums are float32.",
    { otherwise: '"bfloat16" on a GPU and "float32" on the CPU' },
  ),
  threads: whole(undefined, "Threads that compute.", { least: 1, otherwise: "every core that the process may use" }),
  maxPositions: whole(undefined, "Longest sequence, prompt and reply together.", {
    least: leastPositions,
    most: mostTokens,
    otherwise: "the model's own limit",
  }),
  microBatchTokens: whole(
    undefined,
    "Tokens trained at once; more takes more memory, and gradients are added up in another order.",
    {
      least: 1,
      most: mostTokens,
      otherwise: "2048, on a GPU 16384",
    },
  ),
  longestRow: whole(
    undefined,
    "Tokens of the longest row that will be trained; one longer than microBatchTokens is trained alone, and this counts the " +
      "memory that it takes.",
    {
      least: 1,
      most: mostTokens,
      otherwise: "as long as there is room for beside what is planned (`plan.longestRow`)",
    },
  ),
  cacheBytes: whole(undefined, "Memory for keys and values while sampling, in bytes.", {
    least: 1,
    otherwise:
      "what 256 sequences of 4096 tokens take, or what is left; on the CPU 64 sequences, or half of what is left",
  }),
  recompute: oneOf(
    "auto",
    ["auto", "none", "norms", "mlp", "block"],
    "What the backward pass computes again instead of keeping it: nothing, the inputs of the multiplications, also the inside " +
      "of the feed-forward network, or the whole layer. Each saves memory and costs time, up to a third of training; the " +
      'results are the same. "auto" takes the least that fits.',
  ),
  moments: oneOf(
    "float32",
    ["float32", "bfloat16"],
    "How AdamW's moments are kept; bfloat16 halves their memory and rounds them.",
  ),
  sharePrefixes: flag(
    true,
    "What rows of one batch have in common at their beginning (prompts, conversations) is computed once in training. False computes " +
      "each row by itself: a token's log-probability then has the same bits whatever rows stand beside it.",
  ),
  lora: optionalGroup(
    loraFields,
    "Train a low-rank adapter (LoRA) and leave the model as it is.",
    "all weights are trained",
  ),
  librarySampling: flag(
    false,
    "Whether NVIDIA's matrix library, which trains where a GPU's machine has it, computes what is sampled too. It may be faster at " +
      "hundreds of sequences, but adds up by the size of the batch: tokens may then depend on what is sampled beside them.",
  ),
  training: flag(
    true,
    "False for a policy that only samples: no memory for training is asked for, in bfloat16 nothing is kept in float32 beside, and " +
      "it cannot be trained.",
  ),
  reference: flag(false, "Whether a frozen copy will be needed (`reference.freeze`), so that its memory is counted."),
  critic: flag(false, "Whether a critic will be trained (`critic()`), so that its memory is counted."),
}

/** What `NativePolicy.open` and `create` take beside. */
const openFields = {
  ...nativePolicyFields,
  base: text(undefined, "The adapter's model, where it is no longer at the place that the adapter names."),
  deviation: number(undefined, "Standard deviation of the initial weights.", { above: 0, otherwise: "0.02" }),
}

export type NativePolicyOptions = OptionsOf<typeof nativePolicyFields>
export type LoraOptions = OptionsOf<typeof loraFields>

/** Memory in bytes that a policy takes, part by part, and in words (`text`). */
export type MemoryPlan = NativeMemoryPlan

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
  const resolved = resolvePolicyOptions(options)
  const positions = { ...config, maxPositions: options.maxPositions ?? config.maxPositions }
  return native().memoryPlan(positions, resolved, Math.floor(availableBytes))
}

/** Memory that the device which the options choose has for a policy; undefined for a GPU that is not there. */
export function deviceMemory(options: NativePolicyOptions): number | undefined {
  const { cpu, devices } = native().deviceReport()
  return chooseDevice(options) === "cpu" ? cpu.memoryBytes : devices[0]?.memoryBytes
}

export function chooseDevice({ device = nativePolicyFields.device.fallback }: NativePolicyOptions): "cpu" | "cuda" {
  if (device !== "auto") return device
  return native().deviceReport().devices.length > 0 ? "cuda" : "cpu"
}

/** Options as the engine takes them. Throws `BAD_ARGUMENT` for what is unknown or has no meaning. */
export function resolvePolicyOptions(given: NativePolicyOptions): NativeEngineOptions {
  const options = readOptions("policy", given, openFields)
  const device = chooseDevice(options)
  return {
    device,
    precision: options.precision ?? (device === "cuda" ? "bfloat16" : "float32"),
    threads: options.threads ?? native().deviceReport().cpu.threads,
    microBatchTokens: options.microBatchTokens ?? (device === "cuda" ? 16384 : 2048),
    longestRow: options.longestRow ?? 0,
    cacheBytes: options.cacheBytes ?? 0,
    recompute: options.recompute,
    moments: options.moments,
    sharePrefixes: options.sharePrefixes,
    loraRank: options.lora?.rank ?? 0,
    loraAlpha: options.lora ? adapterConfig(options.lora).alpha : 0,
    librarySampling: options.librarySampling,
    trained: options.training,
    reference: options.reference,
    critic: options.critic,
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
