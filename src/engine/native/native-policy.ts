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
import { openSafetensors } from "../../model-files/safetensors.ts"
import { settleHead } from "../../model-files/tied-head.ts"
import { type NativeCompletion, type NativeEngine, native } from "../../native/native.ts"
import { checkArguments, checkList, type KeysOf } from "../../options/arguments.ts"
import { GigpoError } from "../../util/errors.ts"
import { Random } from "../../util/random.ts"
import { checkModelConfig, checkTemperature, checkTokens } from "../check-arguments.ts"
import { checkRequest } from "../check-request.ts"
import { checkUnclaimed } from "../claims.ts"
import { completeStep } from "../complete-step.ts"
import type {
  AdamWStep,
  Completion,
  FrozenWeights,
  LinearLoss,
  LogProbsOptions,
  LossReport,
  ModelStore,
  NativeLoss,
  RunPlan,
  SampleRequest,
  StepReport,
  TokenStatistics,
  Trainable,
} from "../engine.ts"
import type { Sequence } from "../rows.ts"
import { initializeAdapter } from "./adapter.ts"
import { findBase } from "./adapter-base.ts"
import { nativeStatistics, refusals, unknownStatistic } from "./check-plan.ts"
import { Constraint, type WrittenConstraint } from "./constraint.ts"
import { LearnerFiles, type LearnerModel } from "./learner-files.ts"
import { forwardBackward, nativeLosses } from "./losses.ts"
import { NativeCritic } from "./native-critic.ts"
import {
  adapterConfig,
  checkDevice,
  type LoraOptions,
  type MemoryPlan,
  type NativePolicyOptions,
  resolvePolicyOptions,
  resolveWithoutAdapter,
} from "./options.ts"
import { packRows, placesOf } from "./pack-rows.ts"
import { settle } from "./started.ts"
import { nativeStore } from "./store.ts"
import { readTensor } from "./tensor-transfer.ts"
import { warnOfThreads } from "./too-many-threads.ts"
import { askedTop, toldTop } from "./top-tokens.ts"
import { Turns } from "./turns.ts"
import { warnWithoutLibrary } from "./without-library.ts"

interface SaveOptions {
  readonly files?: readonly string[]
  readonly overwrite?: boolean
  readonly signal?: AbortSignal | undefined
}
const saveKeys: KeysOf<SaveOptions> = { files: true, overwrite: true, signal: true }
const logProbsKeys: KeysOf<LogProbsOptions> = { of: true, needs: true, top: true, temperature: true, signal: true }

/** What sampling has cost since the policy was opened. */
export interface SamplingStatistics {
  /** Tokens that went through the model: of prompts, sampled ones, and again what was given up when the cache was full. */
  readonly computedTokens: number
  /** Tokens that did not, because their keys and values were in the cache: shared beginnings of prompts. */
  readonly reusedTokens: number
  readonly sampledTokens: number
  /** Times that a completion had to give up its part of the cache; a larger `kvCacheBytes` avoids it. */
  readonly preemptions: number
}

/**
 * The policy on this machine: a native engine with a thread of its own. Calls run in the order they are made, samples that
 * stand together run together, and the event loop is never held up. What reads or writes all weights meets one state of them: an
 * update waits until a model is saved, all else only until one is loaded. Rows belong to a call until it is settled.
 */
export class NativePolicy implements Trainable {
  readonly config: ModelConfig
  /** Longest sequence this policy was opened for, prompt and reply together. */
  readonly maxPositions: number
  readonly device: "cpu" | "cuda"
  readonly precision: "float32" | "bfloat16"
  /** The adapter's size where one is trained, undefined where the whole model is. */
  readonly lora: AdapterConfig | undefined
  readonly losses: readonly NativeLoss["kind"][] = nativeLosses
  /** Saves and restores what is trained, with AdamW's moments. */
  readonly store: ModelStore
  readonly #options: NativePolicyOptions
  readonly #engine: NativeEngine
  readonly #model: LearnerModel
  readonly #files: LearnerFiles
  readonly #turns = new Turns()
  #critic: Promise<NativeCritic> | undefined

  /**
   * Opens a Hugging Face model folder (config.json and safetensors; Qwen2, Qwen3, Llama), or the folder of a LoRA adapter as PEFT
   * writes it, and with it the model it names. A name on the Hugging Face Hub (owner/name) stands for its folder, as `resolveModel` finds it.
   *
   * @param options.base - the adapter's model, where it is no longer at the place that the adapter names.
   * @param options.signal - aborting it gives up opening.
   * @throws GigpoError `BAD_MODEL` where files are missing, corrupt or do not fit together (nothing is allocated before all
   * headers have been checked), `OUT_OF_MEMORY` with settings that would fit, `DEVICE_UNAVAILABLE`.
   */
  static async open(
    named: string,
    given: NativePolicyOptions & { readonly base?: string; readonly signal?: AbortSignal | undefined } = {},
  ): Promise<NativePolicy> {
    checkArguments("NativePolicy.open", given)
    const { signal, ...options } = given
    resolveWithoutAdapter(options) // refuses what has no meaning before any file is looked at
    const directory = await resolveModel(named, { signal })
    await checkModelFolder(directory)
    if (!(await isAdapterFolder(directory))) return await NativePolicy.#openModel(directory, options, signal)
    await checkIntact(directory, "model")
    const stored = await readAdapterConfig(directory)
    checkAsked(directory, stored.config, options.lora)
    const base = await findBase(directory, stored, { given: options.base, signal })
    await checkModelFolder(base)
    const model = await readModelConfig(base)
    layoutOfStored(directory, stored, model, "language") // refused before weights are read
    const lora = withoutUnmatched(model, stored.config)
    if (stored.dropout > 0 && options.training !== false)
      warnOnce(
        `${directory}: lora_dropout is ${stored.dropout}; training here drops nothing. The key is kept when it is saved.`,
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
    const files = await openSafetensors(directory)
    try {
      const config = await settleHead(stated, files)
      checkTensors(config, files)
      const policy = new NativePolicy(config, options, await readConfigJson(directory))
      return await policy.#orDispose(async () => {
        await policy.#files.takeWeights(files, directory, signal)
        const random = new Random(options.lora?.seed ?? 0).fork("adapter")
        if (policy.lora) await initializeAdapter(policy.#engine, random, signal)
      })
    } finally {
      await files.close()
    }
  }

  /**
   * A model with random weights: matrices from N(0, deviation²) (default 0.02), norms 1, biases 0. An adapter's first values come
   * from `random` too.
   */
  static async create(
    config: ModelConfig,
    random: Random,
    given: NativePolicyOptions & { readonly deviation?: number; readonly signal?: AbortSignal | undefined } = {},
  ): Promise<NativePolicy> {
    checkArguments("NativePolicy.create", given)
    const { signal, ...options } = given
    if (!Array.isArray(random?.key))
      throw new GigpoError("BAD_ARGUMENT", "NativePolicy.create needs random numbers: give new Random(seed).")
    const policy = new NativePolicy(config, options)
    return await policy.#orDispose(async () => {
      await settle(() => policy.#engine.initialize(random.key, options.deviation ?? 0.02), signal)
      if (policy.lora) await initializeAdapter(policy.#engine, random.fork("adapter"), signal)
    })
  }

  private constructor(config: ModelConfig, options: NativePolicyOptions, original?: Readonly<Record<string, unknown>>) {
    checkModelConfig(config)
    const resolved = resolvePolicyOptions(options, config)
    checkDevice(resolved.device)
    if (resolved.device === "cpu") warnOfThreads(resolved.threads)
    if (options.maxPositions !== undefined && options.maxPositions > config.maxPositions)
      warnOnce(
        `maxPositions is ${options.maxPositions}, but the model was made for ${config.maxPositions} positions (max_position_embeddings): what it says beyond them is not to be relied on.`,
      )
    this.config = config
    this.maxPositions = options.maxPositions ?? config.maxPositions
    this.device = resolved.device
    this.precision = resolved.precision
    this.lora = options.lora && adapterConfig(options.lora)
    this.#options = options
    this.#engine = new (native().Engine)({ ...config, maxPositions: this.maxPositions }, resolved)
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
      warnWithoutLibrary(this.plan.withoutLibrary)
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

  /** Memory that this policy takes on its device. */
  get plan(): MemoryPlan {
    // The engine has worked already: `open` and `create` wait for its weights.
    return this.#engine.plan!
  }

  /** Longest row that there is memory to learn from. */
  get longestRow(): number {
    return this.plan.longestRow
  }

  /** What sampling has cost so far. */
  get statistics(): SamplingStatistics {
    return this.#engine.statistics
  }

  async sample(request: SampleRequest): Promise<Completion> {
    checkRequest(request, this.config.vocabularySize)
    const { prompt, maxTokens, temperature = 1, key, constraint, onTokens, topTokens = 0, client = 0, signal } = request
    const { group = client } = request
    if (constraint !== undefined && !(constraint instanceof Constraint))
      throw new GigpoError(
        "BAD_ARGUMENT",
        "A constraint of sample() is none that this engine reads; give a Constraint.",
      )
    const stopTokens = Int32Array.from(request.stopTokens)
    const within = constraint && stopTokens.find((token) => !constraint.ends.includes(token))
    if (within !== undefined)
      throw new GigpoError(
        "BAD_ARGUMENT",
        `stopTokens holds ${within}, which would end a text before its constraint does; leave it out, or have the constraint's vocabulary name it among its ends.`,
      )
    const given = {
      prompt,
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

  /** What the model says after each token of one sequence: [tokens × vocabulary]. */
  async logits(tokens: Int32Array): Promise<Float32Array> {
    checkTokens(tokens, "tokens", this.config.vocabularySize)
    return await this.#turns.call(() => this.#engine.logits(tokens))
  }

  /**
   * As in `Trainable`; "reference" is the only other model. Where a constraint leaves fewer tokens than "top" asks for, others stand
   * behind them, as good as impossible.
   */
  async logProbs(rows: readonly Sequence[], options: LogProbsOptions = {}): Promise<TokenStatistics> {
    checkArguments("logProbs", options, logProbsKeys)
    checkList("logProbs: rows", rows)
    const { of = "current", needs = [], top, temperature = 1, signal } = options
    if (of !== "current" && of !== "reference")
      throw new GigpoError("BAD_ARGUMENT", `This engine has no model "${of}"; give "current" or "reference".`)
    for (const need of needs) {
      if (!nativeStatistics.includes(need)) throw new GigpoError("BAD_ARGUMENT", unknownStatistic(need))
    }
    checkTemperature(temperature)
    let asked: ReturnType<typeof askedTop> = {}
    const prepare = async () => {
      const batch = await packRows(rows, { temperature }, signal)
      if (needs.includes("top")) asked = askedTop(placesOf(batch), top)
      return () => this.#engine.logProbs({ ...batch, ...asked }, of, temperature, needs.includes("hellinger"))
    }
    const found = await this.#turns.prepared(prepare, signal)
    return {
      logProbs: found.logProbs,
      ...(needs.includes("entropy") && { entropies: found.entropies }),
      ...(needs.includes("hellinger") && { hellingers: found.hellingers }),
      ...(needs.includes("top") && { top: toldTop(asked, found) }),
    }
  }

  get vocabularySize(): number {
    return this.config.vocabularySize
  }

  /**
   * False where NVIDIA's matrix library was found and samples (`sampleWithCublas`): it chooses its sums by the size of the batch, and
   * which completions run together is a matter of time.
   */
  get deterministic(): boolean {
    return this.#engine.deterministic
  }

  async check(plan: RunPlan): Promise<readonly string[]> {
    const config = { ...this.config, maxPositions: this.maxPositions }
    return refusals(plan, config, { ...this.#options, device: this.device }, this.plan.available)
  }

  /** Keeps a frozen copy of what is trained (of an adapter no more than that): what `logProbs` of "reference" asks. */
  readonly reference: { freeze(): Promise<void> } = {
    freeze: async () => {
      this.#checkChange("reference.freeze()")
      await this.#turns.call(() => this.#engine.freezeReference())
    },
  }

  /** As in `Trainable`. */
  async frozen(options: {
    readonly reference: boolean
    readonly signal?: AbortSignal | undefined
  }): Promise<FrozenWeights | undefined> {
    return await this.#turns.reading(() => this.#files.frozen(options.reference, options.signal), options.signal)
  }

  /** As in `Trainable`. */
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

  async optimizerStep(step: AdamWStep): Promise<StepReport> {
    this.#checkTraining()
    this.#checkChange("optimizerStep()")
    const complete = completeStep(step)
    return await this.#turns.changing(() => settle(() => this.#engine.optimizerStep(complete)))
  }

  /**
   * Its critic, made of the weights that this policy has when it is first called; later calls give the same.
   *
   * @throws GigpoError `OUT_OF_MEMORY` on a GPU whose memory was planned without it: see `critic` of the options.
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

  /** As in `Trainable`. */
  readConstraint(written: unknown): Constraint {
    const { program, vocabulary } = (written ?? {}) as Partial<WrittenConstraint>
    if (!program || !vocabulary) throw new GigpoError("BAD_ARGUMENT", "This was not written of a Constraint.")
    return new Constraint(program, vocabulary)
  }

  /** Forgets gradients that no optimizer step has used. */
  async clearGradients(): Promise<void> {
    this.#checkChange("clearGradients()")
    await this.#turns.call(() => this.#engine.clearGradients())
  }

  /** One weight by its Hugging Face name, or an adapter's by PEFT's; or its gradient, where it is trained. */
  async tensor(name: string, buffer: "weights" | "gradients" = "weights"): Promise<Float32Array> {
    return await this.#turns.call(() => readTensor(this.#engine, buffer, name))
  }

  /**
   * Writes the model in Hugging Face layout, an adapter merged into it: a new folder, whole or not at all.
   *
   * @param options.files - copied beside the weights: the tokenizer's.
   * @param options.overwrite - replace a model that this package wrote there; all other files stay. Default false.
   * @throws GigpoError `FILE_EXISTS` where something is there that is not to be replaced, `IO` where the system cannot write.
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

  /** Takes over the weights of a model folder of the same shape; a frozen reference and an adapter stay as they are. */
  async load(directory: string): Promise<void> {
    this.#checkChange("load()")
    await this.#turns.changing(async () => {
      await checkIntact(directory, "model")
      await this.#files.load(directory)
    })
  }

  /** Writes the adapter alone, as PEFT does (adapter_config.json, adapter_model.safetensors). As `save` otherwise. */
  async saveAdapter(directory: string, options: SaveOptions = {}): Promise<void> {
    checkArguments("saveAdapter", options, saveKeys)
    const { overwrite, signal } = options
    const save = (temporary: string) => this.#files.saveAdapter(temporary, options)
    await this.#turns.reading(() => writeDirectory(directory, save, { overwrite }), signal)
  }

  /**
   * Takes over an adapter of the same rank and alpha, as `saveAdapter` or PEFT wrote it; a frozen reference stays as it is.
   *
   * @throws GigpoError `BAD_MODEL` where it does not fit, or was trained beside a model with other weights.
   */
  async loadAdapter(directory: string): Promise<void> {
    this.#checkChange("loadAdapter()")
    await this.#turns.changing(async () => {
      await checkIntact(directory, "model")
      await this.#files.loadAdapter(directory)
    })
  }

  /** Refuses what would get in the way of a training that works with this policy. */
  #checkChange(call: string): void {
    checkUnclaimed(this, call)
  }

  #checkTraining(): void {
    if (this.#options.training === false)
      throw new GigpoError("BAD_ARGUMENT", "This policy was opened with training: false; open it without to train it.")
  }

  /** Writes AdamW's moments and step count to one safetensors file. */
  async saveOptimizer(path: string): Promise<void> {
    this.#checkTraining()
    await this.#turns.reading(() => this.#files.saveOptimizer(path))
  }

  /** Takes over what `saveOptimizer` wrote, from a folder that holds it as model.safetensors. */
  async loadOptimizer(directory: string, steps: number): Promise<void> {
    this.#checkTraining()
    this.#checkChange("loadOptimizer()")
    await this.#turns.changing(async () => {
      await checkIntact(directory, "model")
      await this.#files.loadOptimizer(directory, steps)
    })
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

/** At each place, as many of `most` as there are. */
function topOf({ topTokens, topLogProbs }: Pick<NativeCompletion, "topTokens" | "topLogProbs">, most: number) {
  return Array.from({ length: topTokens.length / most }, (_, place) => {
    const [first, end] = [place * most, (place + 1) * most]
    const known = Array.from(topTokens.subarray(first, end)).filter((token) => token >= 0)
    return known.map((token, i) => ({ token, logProb: topLogProbs[first + i]! }))
  })
}

/** The shape of what `NativePolicy.open` would open, an adapter's model too. */
export async function readPolicyConfig(directory: string): Promise<ModelConfig> {
  return (await readPolicyShape(directory)).model
}

/** The same with the adapter that the folder holds. */
export async function readPolicyShape(named: string): Promise<{ model: ModelConfig; lora?: AdapterConfig }> {
  const directory = await resolveModel(named, { weights: false })
  await checkModelFolder(directory)
  if (!(await isAdapterFolder(directory))) return { model: await readModelConfig(directory) }
  const stored = await readAdapterConfig(directory)
  const base = await findBase(directory, stored, { weights: false })
  await checkModelFolder(base)
  return { model: await readModelConfig(base), lora: stored.config }
}

/** Options may repeat what an adapter's folder says, and must not say otherwise. */
function checkAsked(directory: string, stored: AdapterConfig, options: LoraOptions | undefined): void {
  if (!options) return
  const asked = adapterConfig(options)
  const { rank, alpha } = stored
  const same = "leave lora out, or give the same"
  if (asked.rank !== rank || asked.alpha !== alpha) {
    const both = `rank ${rank} and alpha ${alpha}, not rank ${asked.rank} and alpha ${asked.alpha}`
    throw new GigpoError("BAD_ARGUMENT", `The adapter in ${directory} has ${both}: ${same}.`)
  }
  const keys = Object.keys(asked) as (keyof AdapterConfig)[]
  const other = keys.find((key) => JSON.stringify(asked[key]) !== JSON.stringify(stored[key]))
  if (other === undefined) return
  const has = JSON.stringify(stored[other]) ?? "nothing"
  throw new GigpoError(
    "BAD_ARGUMENT",
    `The adapter in ${directory} has ${has} as ${other}, not ${JSON.stringify(asked[other])}: ${same}.`,
  )
}
