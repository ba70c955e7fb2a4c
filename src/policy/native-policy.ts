import { copyFile, mkdir } from "node:fs/promises"
import { availableParallelism, totalmem } from "node:os"
import { basename, join } from "node:path"
import { GigpoError } from "../errors.ts"
import { type NativeEngine, native } from "../native.ts"
import type { Random } from "../random.ts"
import {
  checkAdamW,
  checkModelConfig,
  checkSamplingTemperature,
  checkTemperature,
  checkTokens,
  checkWhole,
} from "./check-arguments.ts"
import { io } from "./io-error.ts"
import { forwardBackward } from "./losses.ts"
import { type ModelConfig, readConfigJson, readModelConfig, writeModelConfig } from "./model-config.ts"
import { checkTensors, countParameters } from "./model-tensors.ts"
import { packRows, splitByReply } from "./pack-rows.ts"
import type { AdamWStep, Completion, LossReport, LossSpec, Policy, Row, SampleRequest, StepReport } from "./policy.ts"
import { openSafetensors, type TensorFiles } from "./safetensors.ts"
import { writeSafetensors, writeShardedSafetensors } from "./safetensors-writer.ts"
import { settle } from "./started.ts"
import { readTensor, type StoredBuffer, tensorSources, writeTensor } from "./tensor-transfer.ts"

export interface NativePolicyOptions {
  /** "cpu" is what there is in this version; "auto" (the default) takes it. "cuda" fails with the reason. */
  readonly device?: "auto" | "cpu" | "cuda"
  /** Threads that compute. Default: every core. */
  readonly threads?: number
  /** Longest sequence, prompt and reply together. Default: the model's own limit. */
  readonly maxPositions?: number
  /** Tokens trained at once; more takes more memory and changes nothing else. Default 2048. */
  readonly microBatchTokens?: number
  /** Memory for keys and values while sampling, in bytes. Default 256 MiB. */
  readonly cacheBytes?: number
}

/** What sampling has cost since the policy was opened. */
export interface SamplingStatistics {
  /** Tokens that went through the model: of prompts, sampled ones, and again what was given up when the cache was full. */
  readonly computedTokens: number
  /** Tokens that did not, because their keys and values were in the cache: shared beginnings of prompts. */
  readonly reusedTokens: number
  readonly sampledTokens: number
  /** Times that a completion had to give up its part of the cache; a larger `cacheBytes` avoids it. */
  readonly preemptions: number
}

/**
 * The policy on this machine: a native engine with a thread of its own. Calls run in the order they are made, samples that
 * stand together run together, and the event loop is never held up.
 */
export class NativePolicy implements Policy {
  readonly config: ModelConfig
  /** Longest sequence this policy was opened for, prompt and reply together. */
  readonly maxPositions: number
  readonly #engine: NativeEngine
  readonly #original: Readonly<Record<string, unknown>> | undefined

  /**
   * Opens a Hugging Face model folder (config.json and safetensors; Qwen2, Qwen3, Llama).
   *
   * @throws GigpoError `BAD_MODEL` where files are missing, corrupt or do not fit together (nothing is allocated before all
   * headers have been checked), `OUT_OF_MEMORY`, `DEVICE_UNAVAILABLE`.
   */
  static async open(directory: string, options: NativePolicyOptions = {}): Promise<NativePolicy> {
    const config = await readModelConfig(directory)
    const files = await openSafetensors(directory)
    try {
      checkTensors(config, files)
      const policy = new NativePolicy(config, options, await readConfigJson(directory))
      try {
        await policy.#takeWeights(files)
        return policy
      } catch (error) {
        await policy.dispose()
        throw error
      }
    } finally {
      await files.close()
    }
  }

  /** A model with random weights: matrices from N(0, deviation²) (default 0.02), norms 1, biases 0. */
  static async create(
    config: ModelConfig,
    random: Random,
    options: NativePolicyOptions & { readonly deviation?: number } = {},
  ): Promise<NativePolicy> {
    const policy = new NativePolicy(config, options)
    await settle(() => policy.#engine.initialize(random.key, options.deviation ?? 0.02))
    return policy
  }

  private constructor(config: ModelConfig, options: NativePolicyOptions, original?: Readonly<Record<string, unknown>>) {
    checkOptions(config, options)
    this.config = config
    this.maxPositions = options.maxPositions ?? config.maxPositions
    this.#original = original
    this.#engine = new (native().Engine)(
      { ...config, maxPositions: this.maxPositions },
      {
        device: "cpu",
        precision: "float32",
        threads: options.threads ?? availableParallelism(),
        microBatchTokens: options.microBatchTokens ?? 2048,
        cacheBytes: options.cacheBytes ?? 0,
        recompute: "none",
        moments: "float32",
        loraRank: 0,
        loraAlpha: 0,
        trained: true,
        reference: false,
      },
    )
  }

  async #takeWeights(files: TensorFiles): Promise<void> {
    for (const [index, { name }] of this.#engine.parameters.entries()) {
      await writeTensor(this.#engine, "weights", index, files.info(name).dtype, files.read(name))
    }
  }

  /** Number of weights; tied embeddings count once. */
  get parameters(): number {
    return countParameters(this.config)
  }

  /** What sampling has cost so far. */
  get statistics(): SamplingStatistics {
    return this.#engine.statistics
  }

  async sample(request: SampleRequest): Promise<Completion> {
    const { prompt, maxTokens, temperature = 1, stopTokens, key, signal } = request
    checkTokens(prompt, "prompt", this.config.vocabularySize)
    checkSamplingTemperature(temperature)
    checkWhole(maxTokens, "maxTokens")
    const { tokens, logProbs, stopped } = await settle(
      () => this.#engine.sample(prompt, maxTokens, temperature, Int32Array.from(stopTokens), key),
      signal,
    )
    if (!logProbs.every(Number.isFinite))
      throw new GigpoError("NON_FINITE", "The model's logits are not finite: go back to an earlier checkpoint.")
    return { tokens, logProbs, finishReason: stopped ? "stop" : "length" }
  }

  /** What the model says after each token of one sequence: [tokens × vocabulary]. */
  async logits(tokens: Int32Array): Promise<Float32Array> {
    checkTokens(tokens, "tokens", this.config.vocabularySize)
    return await settle(() => this.#engine.logits(tokens))
  }

  async logProbs(
    rows: readonly Row[],
    which: "current" | "reference",
    options: { temperature?: number; signal?: AbortSignal } = {},
  ): Promise<Float32Array[]> {
    const packed = packRows(rows, this.config.vocabularySize)
    checkTemperature(options.temperature)
    const flat = await settle(
      () => this.#engine.logProbs(packed, which === "reference", options.temperature ?? 1),
      options.signal,
    )
    return splitByReply(flat, rows)
  }

  /** Keeps a frozen copy of the weights: what `logProbs(rows, "reference")` asks. */
  async freezeReference(): Promise<void> {
    await settle(() => this.#engine.freezeReference())
  }

  /**
   * As in `Policy`. A call that is aborted or fails drops the gradients, those of earlier calls too. A custom loss, or a policy
   * loss with `ratio: "sequence"`, is two pieces of native work: wait for it before the call that comes next.
   */
  async forwardBackward(
    rows: readonly Row[],
    loss: LossSpec,
    options: { signal?: AbortSignal } = {},
  ): Promise<LossReport> {
    return await forwardBackward(this, this.#engine, this.config.vocabularySize, rows, loss, options.signal)
  }

  async optimizerStep(step: AdamWStep): Promise<StepReport> {
    const { learningRate, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weightDecay = 0, maxGradientNorm = 1 } = step
    const complete = { learningRate, beta1, beta2, epsilon, weightDecay, maxGradientNorm }
    checkAdamW(complete)
    return await settle(() => this.#engine.optimizerStep(complete))
  }

  /** Forgets gradients that no optimizer step has used. */
  async clearGradients(): Promise<void> {
    await settle(() => this.#engine.clearGradients())
  }

  /** One weight by its Hugging Face name, its gradient, or AdamW's moments of it. */
  async tensor(name: string, buffer: "weights" | "gradients" = "weights"): Promise<Float32Array> {
    return await readTensor(this.#engine, buffer, name)
  }

  /** The folder is made where it is missing; a model that is already there is not replaced (see `writeDirectory`). */
  async save(directory: string, options: { files?: readonly string[] } = {}): Promise<void> {
    await io("create", directory, mkdir(directory, { recursive: true }))
    await writeModelConfig(directory, this.config, {
      dtype: "F32",
      ...(this.#original && { original: this.#original }),
    })
    await writeShardedSafetensors(directory, tensorSources(this.#engine, "weights"))
    for (const file of options.files ?? []) await copyFile(file, join(directory, basename(file)))
  }

  /** Takes over the weights of a model folder of the same shape; a frozen reference stays as it is. */
  async load(directory: string): Promise<void> {
    const files = await openSafetensors(directory)
    try {
      checkTensors(this.config, files)
      await this.#takeWeights(files)
    } finally {
      await files.close()
    }
  }

  /** Writes AdamW's moments and step count to one safetensors file. */
  async saveOptimizer(path: string): Promise<void> {
    const moments = [...tensorSources(this.#engine, "firstMoment"), ...tensorSources(this.#engine, "secondMoment")]
    await writeSafetensors(path, moments, { format: "gigpo-adamw", steps: String(this.#engine.steps) })
  }

  /** Takes over what `saveOptimizer` wrote, from a folder that holds it as model.safetensors. */
  async loadOptimizer(directory: string, steps: number): Promise<void> {
    const files = await openSafetensors(directory)
    try {
      for (const buffer of ["firstMoment", "secondMoment"] satisfies StoredBuffer[]) {
        for (const [index, { name }] of this.#engine.parameters.entries()) {
          const stored = `${buffer}.${name}`
          await writeTensor(this.#engine, buffer, index, files.info(stored).dtype, files.read(stored))
        }
      }
      this.#engine.steps = steps
    } finally {
      await files.close()
    }
  }

  /** AdamW steps taken so far. */
  get steps(): number {
    return this.#engine.steps
  }

  /** Frees the engine's memory and thread. Calls that still wait fail with `DISPOSED`. */
  async dispose(): Promise<void> {
    await this.#engine.dispose()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.dispose()
  }
}

function checkOptions(config: ModelConfig, options: NativePolicyOptions): void {
  checkModelConfig(config)
  if (options.device === "cuda") {
    const { unavailable } = native().deviceReport()
    throw new GigpoError(
      "DEVICE_UNAVAILABLE",
      `${unavailable?.message ?? "This version trains on the CPU only."} Use device "cpu".`,
    )
  }
  for (const name of ["threads", "maxPositions", "microBatchTokens", "cacheBytes"] as const) {
    if (options[name] !== undefined) checkWhole(options[name], name)
  }
  const needed = countParameters(config) * 4
  if (needed > totalmem()) {
    const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`
    throw new GigpoError(
      "OUT_OF_MEMORY",
      `The weights alone take ${gigabytes(needed)} of this machine's ${gigabytes(totalmem())}: choose a smaller model.`,
    )
  }
}
