import { checkTarget, writeDirectory } from "../../files/atomic-directory.ts"
import { checkIntact } from "../../files/intact.ts"
import { resolveModel } from "../../hub/resolve-model.ts"
import type { AdapterConfig } from "../../model-files/adapter-config.ts"
import { isAdapterFolder, layoutOfStored, readAdapterConfig } from "../../model-files/adapter-files.ts"
import { adapterLayout, withoutUnmatched } from "../../model-files/adapter-layout.ts"
import { checkCopied } from "../../model-files/copied-files.ts"
import { warnOnce } from "../../model-files/known-keys.ts"
import { type ModelConfig, readConfigJson, readModelConfig } from "../../model-files/model-config.ts"
import { checkModelFolder, modelNames } from "../../model-files/model-folder.ts"
import { checkTensors, countParameters } from "../../model-files/model-tensors.ts"
import { openTensors } from "../../model-files/open-tensors.ts"
import { settleHead } from "../../model-files/tied-head.ts"
import { engineName } from "../../model-files/vision/names.ts"
import type { ModelImage } from "../../native/model.ts"
import { type NativeCompletion, type NativeEngine, native } from "../../native/native.ts"
import { checkArguments, checkList, type KeysOf } from "../../options/arguments.ts"
import { GigpoError } from "../../util/errors.ts"
import { Random } from "../../util/random.ts"
import { checkTemperature, checkTokens } from "../check-arguments.ts"
import { checkModelConfig } from "../check-model.ts"
import { checkRequest } from "../check-request.ts"
import { checkUnclaimed } from "../claims.ts"
import { completeStep } from "../complete-step.ts"
import type {
  AdamWParameters,
  Completion,
  EngineRequirements,
  FrozenWeights,
  LinearLoss,
  LogProbsOptions,
  LossReport,
  ModelStore,
  NativeLoss,
  OptimizerStepStatistics,
  SampleRequest,
  TokenStatistics,
  Trainable,
} from "../engine.ts"
import type { Sequence } from "../sequence.ts"
import { initializeAdapter } from "./adapter.ts"
import { findBase } from "./adapter-base.ts"
import { nativeStatistics, refusals, unknownStatistic } from "./check-plan.ts"
import { Constraint, type WrittenConstraint } from "./constraint.ts"
import { checkDevice } from "./devices.ts"
import { imagesOfRequest, nativeImages } from "./images.ts"
import { LearnerFiles, type LearnerModel } from "./learner-files.ts"
import { forwardBackward, nativeLosses } from "./losses.ts"
import { NativeCritic } from "./native-critic.ts"
import {
  adapterConfig,
  chooseGpus,
  type LoraOptions,
  type MemoryPlan,
  type NativePolicyOptions,
  resolvePolicyOptions,
  resolveWithoutAdapter,
} from "./options.ts"
import { packRows, placesOf } from "./pack-rows.ts"
import { createEngine } from "./replicated.ts"
import { settle } from "./started.ts"
import { nativeStore } from "./store.ts"
import { readTensor } from "./tensor-transfer.ts"
import { warnOfThreads } from "./too-many-threads.ts"
import { topTokenColumns, topTokensOf } from "./top-tokens.ts"
import { Turns } from "./turns.ts"
import { warnWithoutLibrary } from "./without-library.ts"

interface SaveOptions {
  readonly files?: readonly string[]
  readonly overwrite?: boolean
  readonly signal?: AbortSignal | undefined
}
const saveKeys: KeysOf<SaveOptions> = { files: true, overwrite: true, signal: true }
const logProbsKeys: KeysOf<LogProbsOptions> = { model: true, needs: true, top: true, temperature: true, signal: true }

/** Totals of sampling since the policy was opened. */
export interface SamplingStatistics {
  /** Tokens that went through the model: of prompts, sampled ones, and recomputed ones after a preemption. */
  readonly computedTokens: number
  /** Tokens that were not computed since their keys and values were in the KV cache: shared prefixes of prompts. */
  readonly reusedTokens: number
  readonly sampledTokens: number
  /** Number of times that a completion lost its part of the KV cache; a larger `kvCacheBytes` avoids it. */
  readonly preemptions: number
}

/**
 * Policy on this machine: a native engine with its own thread, or several on as many GPUs, which share the work. Calls run in the order they are made, concurrent samples
 * are batched, and the event loop is never blocked. Reading or writing all weights is atomic: an update waits while a
 * model is saved, and everything waits while one is loaded. Sequences must not change until their call is settled.
 */
export class NativePolicy implements Trainable {
  /** Shape of the model, as in its config.json. */
  readonly config: ModelConfig
  /** Maximum tokens of prompt and completion together. */
  readonly maxPositions: number
  /** Device that computes. */
  readonly device: "cpu" | "cuda"
  /** Numbers of the GPUs of the option `device`, as CUDA counts; empty on the CPU, and for the first usable GPU. */
  readonly gpus: readonly number[]
  /** Number format of the computation. */
  readonly precision: "float32" | "bfloat16"
  /** Configuration of the LoRA adapter; undefined if the whole model is trained. */
  readonly lora: AdapterConfig | undefined
  readonly losses: readonly NativeLoss["kind"][] = nativeLosses
  /** Store of the trained weights, with AdamW's moments. */
  readonly store: ModelStore
  readonly #options: NativePolicyOptions
  readonly #engine: NativeEngine
  readonly #model: LearnerModel
  readonly #files: LearnerFiles
  readonly #turns = new Turns()
  #critic: Promise<NativeCritic> | undefined

  /**
   * Opens a Hugging Face model folder (config.json and safetensors), or the folder of a LoRA
   * adapter in PEFT's layout together with its base model. The model of a name on the Hugging Face Hub (owner/name) is downloaded to the Hugging Face
   * cache.
   *
   * @param given - `base`: folder of the adapter's base model, if it is no longer at the place that the adapter names.
   * @throws GigpoError `BAD_MODEL` if files are missing, corrupt or inconsistent (checked before any memory is
   * allocated), `OUT_OF_MEMORY` with settings that would fit, `DEVICE_UNAVAILABLE`.
   */
  static async open(
    named: string,
    given: NativePolicyOptions & { readonly base?: string; readonly signal?: AbortSignal | undefined } = {},
  ): Promise<NativePolicy> {
    checkArguments("NativePolicy.open", given)
    const { signal, ...options } = given
    resolveWithoutAdapter(options) // rejects invalid options before files are read
    const directory = await resolveModel(named, { signal })
    await checkModelFolder(directory)
    if (!(await isAdapterFolder(directory))) return await NativePolicy.#openModel(directory, options, signal)
    await checkIntact(directory, "model")
    const stored = await readAdapterConfig(directory)
    checkLoraOptions(directory, stored.config, options.lora)
    const base = await findBase(directory, stored, { given: options.base, signal })
    await checkModelFolder(base)
    const model = await readModelConfig(base)
    layoutOfStored(directory, stored, model, "language") // rejected before weights are read
    const lora = withoutUnmatched(model, stored.config)
    if (stored.dropout > 0 && options.training !== false)
      warnOnce(
        `${directory}: lora_dropout is ${stored.dropout}; gigpo trains without dropout. The key is kept when the adapter is saved.`,
      )
    const policy = await NativePolicy.#openModel(base, { ...options, lora }, signal)
    return await policy.#orDispose(() => policy.#files.loadAdapter(directory, signal))
  }

  static async #openModel(
    directory: string,
    options: NativePolicyOptions,
    signal: AbortSignal | undefined,
  ): Promise<NativePolicy> {
    await checkIntact(directory, "model")
    const stated = await readModelConfig(directory)
    const files = await openTensors(directory, stated)
    try {
      const config = await settleHead(stated, files)
      checkTensors(config, files)
      const policy = new NativePolicy(config, options, await readConfigJson(directory))
      return await policy.#orDispose(async () => {
        await policy.#files.takeWeights(files, directory, signal)
        const random = new Random(options.lora?.seed ?? 0).derive("adapter")
        if (policy.lora) await initializeAdapter(policy.#engine, random, signal)
      })
    } finally {
      await files.close()
    }
  }

  /**
   * Creates a model with random weights: matrices from N(0, `deviation`²) (default 0.02), norms 1, biases 0. An adapter
   * is initialized from `random`, too.
   */
  static async create(
    config: ModelConfig,
    random: Random,
    given: NativePolicyOptions & { readonly deviation?: number; readonly signal?: AbortSignal | undefined } = {},
  ): Promise<NativePolicy> {
    checkArguments("NativePolicy.create", given)
    const { signal, ...options } = given
    if (!Array.isArray(random?.key))
      throw new GigpoError(
        "BAD_ARGUMENT",
        "NativePolicy.create needs a random number generator: pass new Random(seed).",
      )
    const policy = new NativePolicy(config, options)
    return await policy.#orDispose(async () => {
      await settle(() => policy.#engine.initialize(random.key, options.deviation ?? 0.02), signal)
      if (policy.lora) await initializeAdapter(policy.#engine, random.derive("adapter"), signal)
    })
  }

  private constructor(config: ModelConfig, options: NativePolicyOptions, original?: Readonly<Record<string, unknown>>) {
    checkModelConfig(config)
    const resolved = resolvePolicyOptions(options, config)
    const gpus = chooseGpus(options)
    checkDevice({ device: resolved.device, gpus }, () => native().deviceReport())
    if (resolved.device === "cpu") warnOfThreads(resolved.threads)
    if (options.maxPositions !== undefined && options.maxPositions > config.maxPositions)
      warnOnce(
        `maxPositions is ${options.maxPositions}, but the model was made for ${config.maxPositions} positions (max_position_embeddings): its ` +
          "output beyond them is unreliable.",
      )
    this.config = config
    this.maxPositions = options.maxPositions ?? config.maxPositions
    this.device = resolved.device
    this.gpus = gpus
    this.precision = resolved.precision
    this.lora = options.lora && adapterConfig(options.lora)
    this.#options = options
    this.#engine = createEngine({ ...config, maxPositions: this.maxPositions }, resolved, gpus)
    const { adapter: layout } = resolved
    const lora = this.lora && layout && { config: this.lora, layout }
    this.#model = { config, head: "language", lora, original }
    this.#files = new LearnerFiles(this.#engine, this.#model)
    const checks = { training: () => this.#checkTraining(), change: () => this.#checkChange("store.restore()") }
    this.store = nativeStore(this.#files, this.#turns, checks)
  }

  async #orDispose(work: () => Promise<void>): Promise<this> {
    try {
      await work()
      warnWithoutLibrary(this.memoryPlan.withoutLibrary)
      return this
    } catch (error) {
      await this.dispose()
      throw error
    }
  }

  /** Number of the model's weights; tied embeddings count once. */
  get parameters(): number {
    return countParameters(this.config)
  }

  /** Memory plan of this policy on its device. */
  get memoryPlan(): MemoryPlan {
    // Known at this point: `open` and `create` wait for the weights.
    return this.#engine.plan!
  }

  /** Maximum tokens of a training sequence that fits in memory. */
  get maxTrainTokens(): number {
    return this.memoryPlan.maxTrainTokens
  }

  /** Totals of sampling so far. */
  get statistics(): SamplingStatistics {
    return this.#engine.statistics
  }

  /** Samples a completion. Concurrent requests are batched; the tokens do not depend on the others. */
  async sample(request: SampleRequest): Promise<Completion> {
    checkRequest(request, this.config.vocabularySize)
    const { prompt, maxTokens, temperature = 1, key, constraint, onTokens, topTokens = 0, client = 0, signal } = request
    const { group = client, attachments } = request
    if (constraint !== undefined && !(constraint instanceof Constraint))
      throw new GigpoError("BAD_ARGUMENT", "sample() got a constraint of another type; pass a Constraint.")
    const stopTokens = Int32Array.from(request.stopTokens)
    const within = constraint && stopTokens.find((token) => !constraint.endTokens.includes(token))
    if (within !== undefined)
      throw new GigpoError(
        "BAD_ARGUMENT",
        `stopTokens contains ${within}, which would end a text before its constraint does; remove it, or add it to the ends of the ` +
          "constraint's vocabulary.",
      )
    const given = {
      prompt,
      ...imagesOfRequest(attachments),
      maxTokens,
      temperature,
      stopTokens,
      key,
      constraint: constraint?.native,
      onTokens,
      topTokens,
      client,
      group,
    }
    const sampled = await this.#turns.call(() => this.#engine.sample(given), signal)
    const { tokens, logProbs, entropies, stopped, ...top } = sampled
    if (!logProbs.every(Number.isFinite))
      throw new GigpoError("NON_FINITE", "The model's logits are not finite: go back to an earlier checkpoint.")
    const finishReason = stopped ? "stop" : "length"
    return { tokens, logProbs, entropies, finishReason, ...(topTokens > 0 && { top: topOf(top, topTokens) }) }
  }

  /**
   * Returns the logits after each token of one sequence: [tokens × vocabulary].
   *
   * @param images - images of its image tokens, in order, for a vision-language model.
   */
  async logits(tokens: Int32Array, images: readonly ModelImage[] = []): Promise<Float32Array> {
    checkTokens(tokens, "tokens", this.config.vocabularySize)
    const given = nativeImages(images, "images")
    return await this.#turns.call(() => this.#engine.logits(tokens, given))
  }

  /**
   * Log-probabilities as in `Trainable`; "reference" is the only other model. If a constraint leaves fewer tokens than
   * "top" requests, tokens of negligible probability follow.
   */
  async logProbs(rows: readonly Sequence[], options: LogProbsOptions = {}): Promise<TokenStatistics> {
    checkArguments("logProbs", options, logProbsKeys)
    checkList("logProbs: rows", rows)
    const { model = "current", needs = [], top, temperature = 1, signal } = options
    if (model !== "current" && model !== "reference")
      throw new GigpoError("BAD_ARGUMENT", `The native engine has no model "${model}"; use "current" or "reference".`)
    for (const need of needs) {
      if (!nativeStatistics.includes(need)) throw new GigpoError("BAD_ARGUMENT", unknownStatistic(need))
    }
    checkTemperature(temperature)
    let columns: ReturnType<typeof topTokenColumns> = {}
    const prepare = async () => {
      const batch = await packRows(rows, { temperature }, signal)
      if (needs.includes("top")) columns = topTokenColumns(placesOf(batch), top)
      return () => this.#engine.logProbs({ ...batch, ...columns }, model, temperature, needs.includes("hellinger"))
    }
    const found = await this.#turns.prepared(prepare, signal)
    return {
      logProbs: found.logProbs,
      ...(needs.includes("entropy") && { entropies: found.entropies }),
      ...(needs.includes("hellinger") && { hellingers: found.hellingers }),
      ...(needs.includes("top") && { top: topTokensOf(columns, found) }),
    }
  }

  /** Number of token ids. */
  get vocabularySize(): number {
    return this.config.vocabularySize
  }

  /**
   * Whether a completion depends only on its request. False if NVIDIA's matrix library samples (`sampleWithCublas`):
   * its order of summation depends on the batch size, and batches depend on timing.
   */
  get deterministic(): boolean {
    return this.#engine.deterministic
  }

  async check(plan: EngineRequirements): Promise<readonly string[]> {
    const config = { ...this.config, maxPositions: this.maxPositions }
    return refusals(plan, config, { ...this.#options, device: this.device }, this.memoryPlan.available)
  }

  /**
   * Reference policy: `freeze` keeps a frozen copy of the trained weights (of an adapter only these), for `logProbs` of
   * "reference".
   */
  readonly reference: { freeze(): Promise<void> } = {
    freeze: async () => {
      this.#checkChange("reference.freeze()")
      await this.#turns.call(() => this.#engine.freezeReference())
    },
  }

  /**
   * Returns digests of weights that a training run starting now depends on but its checkpoints do not contain: the base model of an adapter
   * and, with `reference`, the frozen reference policy. Undefined if there are none.
   */
  async frozenWeights(options: {
    readonly reference: boolean
    readonly signal?: AbortSignal | undefined
  }): Promise<FrozenWeights | undefined> {
    return await this.#turns.reading(() => this.#files.frozen(options.reference, options.signal), options.signal)
  }

  /**
   * Computes the loss and adds its gradient to that of earlier calls. A call that is aborted, or fails after its start, drops all gradients.
   */
  async forwardBackward(
    rows: readonly Sequence[],
    loss: NativeLoss | LinearLoss,
    options: { signal?: AbortSignal | undefined } = {},
  ): Promise<LossReport> {
    checkList("forwardBackward: rows", rows)
    checkArguments("forwardBackward: the loss", loss)
    this.#checkTraining()
    this.#checkChange("forwardBackward()")
    return await forwardBackward(this.#engine, this.#turns, rows, loss, options.signal)
  }

  async optimizerStep(step: AdamWParameters): Promise<OptimizerStepStatistics> {
    this.#checkTraining()
    this.#checkChange("optimizerStep()")
    const complete = completeStep(step)
    return await this.#turns.changing(() => settle(() => this.#engine.optimizerStep(complete)))
  }

  /**
   * Returns the critic, initialized with the weights of this policy at the first call; later calls return the same.
   *
   * @throws GigpoError `OUT_OF_MEMORY` on a GPU whose memory was planned without a critic: see the option `critic`.
   */
  async critic(): Promise<NativeCritic> {
    this.#checkTraining()
    this.#critic ??= this.#makeCritic()
    try {
      return await this.#critic
    } catch (error) {
      this.#critic = undefined
      throw error
    }
  }

  async #makeCritic(): Promise<NativeCritic> {
    const learner = await this.#turns.call(() => this.#engine.critic())
    const beside = this.lora && this.#files
    const { config } = this.#model
    const fail = (what: string) => new GigpoError("INTERNAL", `The critic's adapter: ${what}.`)
    const lora = this.lora && { config: this.lora, layout: adapterLayout(config, this.lora, "value", fail) }
    const files = new LearnerFiles(learner, { ...this.#model, head: "value", lora }, beside)
    return new NativeCritic(learner, files, this.#turns, (call) => this.#checkChange(`critic ${call}`))
  }

  /**
   * Returns a constraint from its `toJSON` value.
   *
   * @throws GigpoError `BAD_ARGUMENT` for another value.
   */
  readConstraint(written: unknown): Constraint {
    const { program, vocabulary } = (written ?? {}) as Partial<WrittenConstraint>
    if (!program || !vocabulary) throw new GigpoError("BAD_ARGUMENT", "The value is not a serialized Constraint.")
    return new Constraint(program, vocabulary)
  }

  /** Drops accumulated gradients. */
  async clearGradients(): Promise<void> {
    this.#checkChange("clearGradients()")
    await this.#turns.call(() => this.#engine.clearGradients())
  }

  /** Returns one weight by its Hugging Face name, or an adapter's by PEFT's name; or its gradient, if trained. */
  async tensor(name: string, buffer: "weights" | "gradients" = "weights"): Promise<Float32Array> {
    return await this.#turns.call(() => readTensor(this.#engine, buffer, engineName(this.config, name)))
  }

  /**
   * Writes the model in the layout of Hugging Face, with an adapter merged, into a new folder, atomically.
   *
   * @param options.files - files to copy next to the weights, such as the tokenizer's.
   * @param options.overwrite - replace a model that this package wrote there; other files stay. Default false.
   * @throws GigpoError `FILE_EXISTS` if something exists that must not be replaced, `IO` if the system cannot write.
   */
  async save(directory: string, options: SaveOptions = {}): Promise<void> {
    checkArguments("save", options, saveKeys)
    const { overwrite, files, signal } = options
    await this.#turns.reading(async () => {
      await checkCopied(files)
      await checkTarget(directory, { overwrite, names: modelNames(files) }) // before gigabytes are written
      await writeDirectory(directory, (temporary) => this.#files.save(temporary, options), { overwrite })
    }, signal)
  }

  /** Loads the weights of a model folder of the same shape; a frozen reference and an adapter stay unchanged. */
  async load(directory: string): Promise<void> {
    this.#checkChange("load()")
    await this.#turns.changing(async () => {
      await checkIntact(directory, "model")
      await this.#files.load(directory)
    })
  }

  /**
   * Writes only the adapter, in PEFT's layout (adapter_config.json, adapter_model.safetensors). Otherwise like `save`.
   */
  async saveAdapter(directory: string, options: SaveOptions = {}): Promise<void> {
    checkArguments("saveAdapter", options, saveKeys)
    const { overwrite, signal } = options
    const save = (temporary: string) => this.#files.saveAdapter(temporary, options)
    await this.#turns.reading(() => writeDirectory(directory, save, { overwrite }), signal)
  }

  /**
   * Loads an adapter of the same rank and alpha, written by `saveAdapter` or PEFT; a frozen reference stays unchanged.
   *
   * @throws GigpoError `BAD_MODEL` if it does not fit, or was trained on a base model with other weights.
   */
  async loadAdapter(directory: string): Promise<void> {
    this.#checkChange("loadAdapter()")
    await this.#turns.changing(async () => {
      await checkIntact(directory, "model")
      await this.#files.loadAdapter(directory)
    })
  }

  /** Throws `POLICY_BUSY` while a training run uses this policy. */
  #checkChange(call: string): void {
    checkUnclaimed(this, call)
  }

  #checkTraining(): void {
    if (this.#options.training === false)
      throw new GigpoError(
        "BAD_ARGUMENT",
        "This policy was opened with training: false; open it without that option to train it.",
      )
  }

  /**
   * Writes AdamW's moments and step count to one safetensors file.
   *
   * @param path - path of the file. `loadOptimizer` reads a folder, in which the file must have the name model.safetensors.
   */
  async saveOptimizer(path: string): Promise<void> {
    this.#checkTraining()
    await this.#turns.reading(() => this.#files.saveOptimizer(path))
  }

  /** Loads what `saveOptimizer` wrote, from a folder that contains it as model.safetensors. */
  async loadOptimizer(directory: string, steps: number): Promise<void> {
    this.#checkTraining()
    this.#checkChange("loadOptimizer()")
    await this.#turns.changing(async () => {
      await checkIntact(directory, "model")
      await this.#files.loadOptimizer(directory, steps)
    })
  }

  /** Number of AdamW steps so far. */
  get optimizerSteps(): number {
    return this.#engine.steps
  }

  /** Frees the engine's memory and thread. Pending calls fail with `DISPOSED`. */
  async dispose(): Promise<void> {
    await this.#engine.dispose()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.dispose()
  }
}

/** Most likely tokens per position, up to `most`. */
function topOf({ topTokens, topLogProbs }: Pick<NativeCompletion, "topTokens" | "topLogProbs">, most: number) {
  return Array.from({ length: topTokens.length / most }, (_, place) => {
    const [first, end] = [place * most, (place + 1) * most]
    const known = Array.from(topTokens.subarray(first, end)).filter((token) => token >= 0)
    return known.map((token, i) => ({ token, logProb: topLogProbs[first + i]! }))
  })
}

/** Shape of the model that `NativePolicy.open` would open; for an adapter, that of its base model. */
export async function readPolicyConfig(directory: string): Promise<ModelConfig> {
  return (await readPolicyShape(directory)).model
}

/** Shape of the model and configuration of the adapter in a folder. */
export async function readPolicyShape(named: string): Promise<{ model: ModelConfig; lora?: AdapterConfig }> {
  const directory = await resolveModel(named, { weights: false })
  await checkModelFolder(directory)
  if (!(await isAdapterFolder(directory))) return { model: await readModelConfig(directory) }
  const stored = await readAdapterConfig(directory)
  const base = await findBase(directory, stored, { weights: false })
  await checkModelFolder(base)
  return { model: await readModelConfig(base), lora: stored.config }
}

/** Checks that options equal the adapter's stored configuration, if given. */
function checkLoraOptions(directory: string, stored: AdapterConfig, options: LoraOptions | undefined): void {
  if (!options) return
  const requested = adapterConfig(options)
  const { rank, alpha } = stored
  const same = "remove lora, or set the same values"
  if (requested.rank !== rank || requested.alpha !== alpha) {
    const both = `rank ${rank} and alpha ${alpha}, not rank ${requested.rank} and alpha ${requested.alpha}`
    throw new GigpoError("BAD_ARGUMENT", `The adapter in ${directory} has ${both}: ${same}.`)
  }
  const keys = Object.keys(requested) as (keyof AdapterConfig)[]
  const other = keys.find((key) => JSON.stringify(requested[key]) !== JSON.stringify(stored[key]))
  if (other === undefined) return
  const has = JSON.stringify(stored[other]) ?? "nothing"
  throw new GigpoError(
    "BAD_ARGUMENT",
    `The adapter in ${directory} has ${has} as ${other}, not ${JSON.stringify(requested[other])}: ${same}.`,
  )
}
