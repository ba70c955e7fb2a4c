import { copyFile } from "node:fs/promises"
import { availableParallelism, totalmem } from "node:os"
import { basename, join } from "node:path"
import { GigpoError } from "../errors.ts"
import { type NativeEngine, native } from "../native.ts"
import type { Random } from "../random.ts"
import { forwardBackward } from "./losses.ts"
import { type ModelConfig, readConfigJson, readModelConfig, writeModelConfig } from "./model-config.ts"
import { checkTensors, countParameters } from "./model-tensors.ts"
import { packRows, splitByReply } from "./pack-rows.ts"
import type { AdamWStep, Completion, LossReport, LossSpec, Policy, Row, SampleRequest, StepReport } from "./policy.ts"
import { openSafetensors } from "./safetensors.ts"
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

/**
 * The policy on this machine: a native engine with a thread of its own. Calls run in the order they are made, samples that
 * stand together run together, and the event loop is never held up.
 */
export class NativePolicy implements Policy {
  readonly config: ModelConfig
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
        for (const [index, { name }] of policy.#engine.parameters.entries()) {
          await writeTensor(policy.#engine, "weights", index, files.info(name).dtype, files.read(name))
        }
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
    this.#original = original
    this.#engine = new (native().Engine)(
      { ...config, maxPositions: options.maxPositions ?? config.maxPositions },
      {
        threads: options.threads ?? availableParallelism(),
        microBatchTokens: options.microBatchTokens ?? 2048,
        cacheBytes: options.cacheBytes ?? 256 * 2 ** 20,
      },
    )
  }

  #checkTokens(tokens: Int32Array, name: string): void {
    const size = this.config.vocabularySize
    if (tokens.length === 0) throw bad(`${name} is empty; give at least one token.`)
    const wrong = tokens.find((token) => token < 0 || token >= size)
    if (wrong !== undefined) throw bad(`${name} holds token ${wrong}, outside the model's vocabulary of ${size}.`)
  }

  /** Number of weights; tied embeddings count once. */
  get parameters(): number {
    return countParameters(this.config)
  }

  async sample(request: SampleRequest): Promise<Completion> {
    const { prompt, maxTokens, temperature = 1, stopTokens, key, signal } = request
    this.#checkTokens(prompt, "prompt")
    if (!(temperature >= 0 && Number.isFinite(temperature)))
      throw bad(`temperature is ${temperature}; it must be 0 or more.`)
    if (!Number.isSafeInteger(maxTokens)) throw bad(`maxTokens is ${maxTokens}; it must be a whole number.`)
    const { tokens, logProbs, stopped } = await settle(
      () => this.#engine.sample(prompt, maxTokens, temperature, Int32Array.from(stopTokens), key),
      signal,
    )
    return { tokens, logProbs, finishReason: stopped ? "stop" : "length" }
  }

  /** What the model says after each token of one sequence: [tokens × vocabulary]. */
  async logits(tokens: Int32Array): Promise<Float32Array> {
    this.#checkTokens(tokens, "tokens")
    return await settle(() => this.#engine.logits(tokens))
  }

  async logProbs(
    rows: readonly Row[],
    which: "current" | "reference",
    options: { temperature?: number; signal?: AbortSignal } = {},
  ): Promise<Float32Array[]> {
    const packed = packRows(rows, this.config.vocabularySize)
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

  async forwardBackward(
    rows: readonly Row[],
    loss: LossSpec,
    options: { signal?: AbortSignal } = {},
  ): Promise<LossReport> {
    return await forwardBackward(this, this.#engine, this.config.vocabularySize, rows, loss, options.signal)
  }

  async optimizerStep(step: AdamWStep): Promise<StepReport> {
    const { learningRate, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weightDecay = 0, maxGradientNorm = 1 } = step
    if (!(learningRate >= 0 && Number.isFinite(learningRate)))
      throw bad(`learningRate is ${learningRate}; it must be a number of at least 0.`)
    return await settle(() =>
      this.#engine.optimizerStep({ learningRate, beta1, beta2, epsilon, weightDecay, maxGradientNorm }),
    )
  }

  /** Forgets gradients that no optimizer step has used. */
  async clearGradients(): Promise<void> {
    await settle(() => this.#engine.clearGradients())
  }

  /** One weight by its Hugging Face name, its gradient, or AdamW's moments of it. */
  async tensor(name: string, buffer: "weights" | "gradients" = "weights"): Promise<Float32Array> {
    return await readTensor(this.#engine, buffer, name)
  }

  async save(directory: string, options: { files?: readonly string[] } = {}): Promise<void> {
    await writeModelConfig(directory, this.config, {
      dtype: "F32",
      ...(this.#original && { original: this.#original }),
    })
    await writeShardedSafetensors(directory, tensorSources(this.#engine, "weights"))
    for (const file of options.files ?? []) await copyFile(file, join(directory, basename(file)))
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
  if (options.device === "cuda") {
    const { unavailable } = native().deviceReport()
    throw new GigpoError(
      "DEVICE_UNAVAILABLE",
      `${unavailable?.message ?? "This version trains on the CPU only."} Use device "cpu".`,
    )
  }
  for (const name of ["threads", "maxPositions", "microBatchTokens", "cacheBytes"] as const) {
    const value = options[name]
    if (value !== undefined && !(Number.isSafeInteger(value) && value >= 1))
      throw bad(`${name} is ${value}; it must be a whole number of at least 1.`)
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

function bad(message: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", message)
}
