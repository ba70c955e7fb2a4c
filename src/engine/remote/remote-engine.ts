import { join } from "node:path"
import { writeDirectory } from "../../files/atomic-directory.ts"
import { checkIntact } from "../../files/intact.ts"
import { resolveModel } from "../../hub/resolve-model.ts"
import { refuseAdapter } from "../../model-files/adapter-files.ts"
import { readModelConfig } from "../../model-files/model-config.ts"
import { countParameters } from "../../model-files/model-tensors.ts"
import { checkArguments, type KeysOf } from "../../options/arguments.ts"
import { readOptions } from "../../options/read.ts"
import type { OptionsOf } from "../../options/table.ts"
import { GigpoError } from "../../util/errors.ts"
import { joined } from "../../util/joined.ts"
import { Pace } from "../../util/pace.ts"
import { checkRequest } from "../check-request.ts"
import { checkUnclaimed } from "../claims.ts"
import { completeStep } from "../complete-step.ts"
import type {
  AdamWParameters,
  Completion,
  EngineRequirements,
  LinearLoss,
  LogProbsOptions,
  LossReport,
  ModelStore,
  NativeLoss,
  OptimizerStepStatistics,
  SampleRequest,
  Snapshots,
  TokenStatistics,
  Trainable,
} from "../engine.ts"
import { type Sequence, sampledTokens } from "../sequence.ts"
import { TokenTable } from "../token-table.ts"
import type { Capabilities, ProbeReport } from "./capabilities.ts"
import { refusals, runs } from "./check-plan.ts"
import { checkRows } from "./check-rows.ts"
import type { Outage } from "./connection.ts"
import {
  busy,
  gathered,
  linearLoss,
  ofSegments,
  only,
  type RemoteLoss,
  scoringData,
  sftCoefficients,
  surrogateLoss,
} from "./data.ts"
import type { PendingRequest } from "./futures.ts"
import type { Models, Saved } from "./models.ts"
import { openFields } from "./options.ts"
import type { Found } from "./probe.ts"
import type { Published } from "./published.ts"
import { cannot } from "./refused.ts"
import type { RemoteModel } from "./remote-model.ts"
import type { Samplers } from "./samplers.ts"
import type { Session } from "./session.ts"

/** Options of `RemoteEngine`. */
export type RemoteEngineOptions = OptionsOf<typeof openFields> & {
  /** Known features of the server. If given, the server is not probed. */
  readonly capabilities?: Capabilities | undefined
  /** Called with a warning, for example about a slow server. Default: a warning of Node.js. */
  readonly onWarning?: ((message: string) => void) | undefined
}
type Resolved = ReturnType<typeof readOpenOptions>

/** Code of connected engines. It is loaded when an engine is opened, so that importing the package does not load it. */
type Connected = typeof import("./connected.ts")

/** Parameters of a model that are needed to use its tokens. */
export interface RemoteShape {
  /** Number of token ids. */
  readonly vocabularySize: number
  /** Maximum tokens of prompt and completion together. */
  readonly maxPositions: number
  /** Number of the model's weights; the default learning rate depends on it. */
  readonly parameters: number
}

/** Rejects a requested maximum beyond the server's context. The model's own limit is reduced silently. */
function checkLongest(requested: number | undefined, longest: number, model: string): void {
  if (requested === undefined || requested <= longest) return
  throw new GigpoError(
    "ENGINE_REJECTED",
    `maxPositions is ${requested}, but the longest context of ${model} on this engine is ${longest} tokens: set maxPositions to at most ${longest}.`,
  )
}

const logProbsKeys: KeysOf<LogProbsOptions> = { model: true, needs: true, top: true, temperature: true, signal: true }

/**
 * Policy on a server of the Tinker API: an existing distributed engine, or `gigpo engine` on another machine. Servers
 * differ, so the features of a server are probed before a run starts, and unsupported options are rejected then.
 */
export class RemoteEngine implements Trainable {
  /** Number of token ids. */
  readonly vocabularySize: number
  readonly maxPositions: number
  readonly parameters: number
  readonly lora: object | undefined
  readonly deterministic: boolean
  readonly losses: readonly NativeLoss["kind"][] = ["cross-entropy", "clipped-surrogate"]
  /** Name of the model on the server. */
  readonly baseModel: string
  readonly store: ModelStore
  /** Reference policy: the initial model, through the server's sampler, from the call of `freeze` on. */
  readonly reference: { freeze(): Promise<void> }
  readonly snapshots: Snapshots
  readonly #code: Connected
  readonly #session: Session
  readonly #samplers: Samplers
  readonly #options: Resolved
  #found: Promise<Found> | undefined
  #capabilities: Capabilities | undefined
  readonly #models: Models
  readonly #published: Published
  #model: Promise<RemoteModel> | undefined
  #from: Saved | undefined
  /** Whether the server holds gradients that no optimizer step has used. */
  #holds = false
  /** Latest log-probabilities of sequences from the trainer, under the current weights. */
  #known = new WeakMap<Sequence, Float32Array>()

  /**
   * Connects to a server.
   *
   * @param model - local folder with the model's config.json, or a name on the Hugging Face Hub; its tokenizer must be the server's. A remote.json in
   * it, as in checkpoints and models of remote engines, names the server's weights to start from.
   * @throws GigpoError `ENGINE_LOST` if no server answers, `ENGINE_REJECTED` if the key or the model is unknown there.
   */
  static async open(model: string, options: RemoteEngineOptions): Promise<RemoteEngine> {
    const resolved = readOpenOptions(options)
    const directory = await resolveModel(model, { weights: false })
    await refuseAdapter(directory)
    await checkIntact(directory, "shape")
    const config = await readModelConfig(directory)
    const { readKept } = await import("./connected.ts")
    const from = resolved.from ?? (await readKept(directory))?.path
    const shape = { ...config, parameters: countParameters(config) }
    return await RemoteEngine.#connect(shape, { ...resolved, from }, directory)
  }

  /** Connects to a server without a local model folder. */
  static async connect(shape: RemoteShape, options: RemoteEngineOptions): Promise<RemoteEngine> {
    return await RemoteEngine.#connect(shape, readOpenOptions(options))
  }

  static async #connect(shape: RemoteShape, options: Resolved, directory?: string): Promise<RemoteEngine> {
    const code = await import("./connected.ts")
    const session = await code.openSession({ ...options, key: options.key ?? process.env.TINKER_API_KEY })
    try {
      const { name, longest } = await code.findModel(session, options.model)
      checkLongest(options.maxPositions, longest, name)
      const maxPositions = Math.min(options.maxPositions ?? shape.maxPositions, longest)
      return new RemoteEngine(code, session, name, options, { ...shape, maxPositions }, directory)
    } catch (error) {
      await session.close()
      throw error
    }
  }

  private constructor(
    code: Connected,
    session: Session,
    baseModel: string,
    options: Resolved,
    { vocabularySize, maxPositions, parameters }: RemoteShape,
    directory: string | undefined,
  ) {
    this.vocabularySize = vocabularySize
    this.maxPositions = maxPositions
    this.parameters = parameters
    this.baseModel = baseModel
    this.deterministic = code.isOurs(session)
    this.#code = code
    this.#session = session
    this.#samplers = new code.Samplers(session)
    this.#options = options
    this.#from = options.from === undefined ? undefined : { path: options.from, optimizer: false }
    const { rank, seed, from } = options
    this.lora = rank === 0 ? undefined : { rank }
    this.#models = new code.Models({ session, baseModel, rank, seed, directory })
    this.#published = new code.Published({
      ...{ samplers: this.#samplers, baseModel, from },
      untouched: () => !this.#found && !this.#model,
      trained: () => this.#trained(),
    })
    this.reference = {
      freeze: async () => {
        checkUnclaimed(this, "reference.freeze()")
        await this.#published.frozen()
      },
    }
    this.snapshots = code.remoteSnapshots({
      ...{ session, samplers: this.#samplers, policy: this },
      version: () => this.#published.version,
      trained: () => this.#trained(),
      sample: (request, of, version) => this.#sample(request, async () => of, version),
      score: (rows, options, of) => this.#scored(rows, options, async () => of),
    })
    this.store = code.remoteStore({
      ...{
        url: session.connection.url,
        baseModel,
        files: directory === undefined ? [] : [join(directory, "config.json")],
      },
      model: () => this.#trained(),
      goOnFrom: (path) => {
        checkUnclaimed(this, "store.restore()")
        return this.#goOnFrom(path)
      },
      probes: () => this.probes(),
    })
  }

  /** Address of the server. */
  get url(): string {
    return this.#session.connection.url
  }

  /** Requests that the server has accepted but not answered, with their age and the state of its queue. */
  get pending(): readonly PendingRequest[] {
    return this.#session.pending
  }

  /** Reason of an outage of the server; undefined while it responds. */
  get outage(): Outage | undefined {
    return this.#session.connection.outage
  }

  /** Result of probing the server; undefined before `check`. */
  async probes(): Promise<ProbeReport | undefined> {
    const found = await this.#found
    if (!found) return undefined
    const { capabilities } = found
    const measured = { ...found.measured, tokenizer: this.#models.tokenizer }
    return {
      url: this.#session.connection.url,
      model: this.baseModel,
      date: new Date().toISOString(),
      capabilities,
      measured,
    }
  }

  /** Samples a completion on the server with the newest published weights. */
  async sample(request: SampleRequest): Promise<Completion> {
    return await this.#sample(request, () => this.#published.current(), this.#published.version)
  }

  async #sample(request: SampleRequest, session: () => Promise<string>, version: number): Promise<Completion> {
    checkRequest(request, this.vocabularySize)
    const { prompt, maxTokens, temperature = 1, stopTokens, key, constraint, onTokens, topTokens = 0, signal } = request
    if (constraint !== undefined) throw cannot("sample under a constraint", "remove the constraint")
    if (request.attachments?.length) throw cannot("read images", "send text")
    if (topTokens > 0) throw cannot("report the most likely tokens", "set topTokens to 0")
    const of = await session()
    // gigpo's server accepts the key of a native engine; others get a 31-bit seed derived from both words.
    const drawnBy = this.deterministic ? { key: [...key] } : { seed: (Math.imul(key[0], 0x9e3779b1) ^ key[1]) >>> 1 }
    const params = { max_tokens: maxTokens, temperature, stop: [...stopTokens], ...drawnBy }
    const { sequences } = await this.#samplers.draw(of, { prompt, params }, signal)
    const { tokens, logProbs, stopped } = sequences[0] ?? {}
    if (!tokens || logProbs?.length !== tokens.length)
      throw new GigpoError("ENGINE_REJECTED", "The engine returned a sample without log-probabilities.")
    const strange = tokens.find((token) => token < 0 || token >= this.vocabularySize)
    if (strange !== undefined)
      throw new GigpoError(
        "ENGINE_REJECTED",
        `The engine sampled token ${strange}, which is not in the model's vocabulary.`,
      )
    checkFinite(logProbs)
    onTokens?.(tokens)
    return { tokens, logProbs, finishReason: stopped ? "stop" : "length", version }
  }

  /** Log-probabilities as in `Trainable`; "reference" is the only other model. */
  async logProbs(rows: readonly Sequence[], options: LogProbsOptions = {}): Promise<TokenStatistics> {
    const { model = "current", signal } = options
    if (model === "reference") return await this.#scored(rows, options, () => this.#published.frozen())
    checkScored(rows, options)
    if (rows.length === 0) return { logProbs: new Float32Array(0) }
    if (model !== "current") throw cannot(`query the model "${model}"`, 'besides the policy there is only "reference"')
    const { wire } = await this.#probed()
    const loss: RemoteLoss = { loss: "cross_entropy", config: {}, data: scoringData(rows) }
    const { logProbs } = await this.#code.trainOn(await this.#trained(), loss, wire, { forwardOnly: true, signal })
    const scores = rows.map((row, r) => ofSegments(row, logProbs[r]!))
    const found = finite(scores)
    for (const [r, row] of rows.entries()) this.#known.set(row, scores[r]!)
    return { logProbs: found }
  }

  /** Log-probabilities by a sampling session. */
  async #scored(
    rows: readonly Sequence[],
    options: LogProbsOptions,
    session: () => Promise<string>,
  ): Promise<TokenStatistics> {
    checkScored(rows, options)
    if (rows.length === 0) return { logProbs: new Float32Array(0) }
    const of = await session()
    const scores = await Promise.all(
      rows.map(async (row) => ofSegments(row, await this.#samplers.score(of, row.tokens, options.signal))),
    )
    return { logProbs: finite(scores) }
  }

  supports(loss: NativeLoss): boolean {
    return runs(loss, this.#capabilities)
  }

  async forwardBackward(
    rows: readonly Sequence[],
    loss: NativeLoss | LinearLoss,
    { signal }: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<LossReport> {
    checkRows(rows, loss.temperature ?? 1)
    checkUnclaimed(this, "forwardBackward()")
    if (rows.length === 0) throw new GigpoError("BAD_ARGUMENT", "There are no sequences to train on.")
    const { wire, capabilities } = await this.#probed()
    if (this.#holds && capabilities.reduction !== "sum")
      throw cannot(
        "add gradients of two calls, since it takes the mean over all data of a step",
        "pass them in one call",
      )
    const pace = new Pace(signal)
    const remote = await this.#translate(rows, loss, capabilities, pace)
    const learned = busy(remote)
    // An optimizer step needs a gradient, even if it is 0.
    const kept = learned.length > 0 ? learned : [0]
    const model = await this.#trained()
    this.#holds = true
    const { logProbs } = await this.#orForget(
      this.#code.trainOn(model, only(remote, kept, capabilities), wire, { signal }),
      signal,
    )
    const reported = capabilities.logProbs ? gathered(rows, kept, logProbs) : undefined
    return {
      loss: loss.kind === "linear" || learned.length === 0 ? 0 : Number.NaN,
      tokens: sampledTokens(learned.map((index) => rows[index]!)),
      metrics: {},
      ...(reported && { logProbs: reported }),
    }
  }

  async #translate(
    rows: readonly Sequence[],
    loss: NativeLoss | LinearLoss,
    capabilities: Capabilities,
    pace: Pace,
  ): Promise<RemoteLoss> {
    if (loss.kind === "clipped-surrogate") {
      if (!runs(loss, capabilities))
        throw cannot("compute this loss itself", 'use "linear", for which the trainer evaluates the loss')
      return surrogateLoss(await TokenTable.paced(rows, pace), loss, capabilities)
    }
    const linear = loss.kind === "linear"
    if (linear && (loss.entropyCoefficients ?? loss.top))
      throw cannot("learn from entropies or from other tokens than the sampled ones", "choose another loss")
    const { customLoss } = capabilities
    if (!customLoss) throw cannot("compute a custom loss", "choose the clipped surrogate")
    const coefficients = linear ? loss.coefficients : sftCoefficients(rows)
    const now = customLoss === "importance_sampling" ? await this.#now(rows, pace.signal) : undefined
    return linearLoss(await TokenTable.paced(rows, pace), coefficients, customLoss, capabilities, now)
  }

  async #now(rows: readonly Sequence[], signal: AbortSignal | undefined): Promise<Float32Array[]> {
    const unknown = rows.filter((row) => !this.#known.has(row))
    if (unknown.length > 0) await this.logProbs(unknown, { signal })
    return rows.map((row) => this.#known.get(row)!)
  }

  async optimizerStep(step: AdamWParameters): Promise<OptimizerStepStatistics> {
    const complete = completeStep(step)
    checkUnclaimed(this, "optimizerStep()")
    const report = await this.#code.stepOf(await this.#trained(), complete)
    this.#holds = false
    this.#changed()
    return report
  }

  async clearGradients(): Promise<void> {
    checkUnclaimed(this, "clearGradients()")
    await this.#forget()
  }

  async #forget(): Promise<void> {
    if (!this.#holds) return
    const model = await this.#trained()
    if ((await this.#probed()).capabilities.clearGradients) {
      await model.call("/gigpo/clear_gradients", {})
      this.#holds = false
      return
    }
    const error = new GigpoError(
      "ENGINE_LOST",
      "This engine cannot drop gradients, and has accumulated some that must not be used. Resume from the last checkpoint.",
    )
    model.spoil(error)
    throw error
  }

  /** Awaits a call; if it was aborted, drops its gradients. */
  async #orForget<T>(call: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    try {
      return await call
    } catch (error) {
      if (signal?.aborted) await this.#forget().catch(() => {})
      throw error
    }
  }

  /** Returns the unsupported parts of a plan. The first call probes the server. */
  async check(plan: EngineRequirements): Promise<readonly string[]> {
    const { capabilities } = await this.#probed()
    return refusals(plan, capabilities)
  }

  /**
   * Writes only the adapter, in PEFT's layout (adapter_config.json, adapter_model.safetensors). `overwrite` replaces an older one; default false.
   *
   * @throws GigpoError `ENGINE_REJECTED` if the server does not offer it for download.
   */
  async saveAdapter(
    directory: string,
    options: { readonly overwrite?: boolean; readonly signal?: AbortSignal } = {},
  ): Promise<void> {
    checkArguments("saveAdapter", options, { overwrite: true, signal: true })
    const { overwrite, signal } = options
    if (this.#options.rank === 0) throw cannot("export an adapter if the whole model is trained", "set engine.rank")
    const bringHome = async (into: string) => {
      const path = await this.#code.saveThere(await this.#trained(), "/save_weights_for_sampler", signal)
      // Each matrix of the model has two of this rank, in float32; adapters of small models are larger than their
      // weights.
      const most = 2 ** 26 + 4 * this.parameters * (1 + this.#options.rank / 64)
      await this.#code.downloadAdapter(this.#session.connection, path, into, { most, signal })
    }
    await writeDirectory(directory, bringHome, { overwrite })
  }

  /** Ends the session; weights saved on the server stay. */
  async dispose(): Promise<void> {
    const model = await this.#model?.catch(() => undefined)
    if (model) await this.#models.free(model)
    await this.#session.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.dispose()
  }

  async #probed(): Promise<Found> {
    const { capabilities, encoding = "protobuf", rank } = this.#options
    this.#found ??= capabilities
      ? Promise.resolve({ capabilities, wire: encoding, measured: {} })
      : this.#code.probe({
          ...{ session: this.#session, samplers: this.#samplers, vocabularySize: this.vocabularySize },
          ...{ baseModel: this.baseModel, wire: this.#options.encoding, movable: rank > 0 || this.deterministic },
          trials: { make: () => this.#models.create(false), free: (model) => this.#models.free(model) },
        })
    try {
      const found = await this.#found
      this.#capabilities = found.capabilities
      return found
    } catch (error) {
      this.#found = undefined
      throw error
    }
  }

  /** Model that is trained, created at first use. */
  async #trained(): Promise<RemoteModel> {
    const { capabilities } = await this.#probed()
    this.#model ??= this.#models.create(capabilities.idempotent, this.#from)
    return await this.#model
  }

  /** Loads saved weights into a new model on the server. */
  async #goOnFrom(path: string): Promise<void> {
    const before = await this.#model
    if (before) await this.#models.free(before)
    this.#model = undefined
    this.#from = { path, optimizer: true }
    this.#holds = false
    this.#changed()
    await this.#trained()
  }

  #changed(): void {
    this.#published.changed()
    this.#known = new WeakMap()
  }
}

/** Checks the arguments of a call for log-probabilities. */
function checkScored(rows: readonly Sequence[], options: LogProbsOptions): void {
  checkArguments("logProbs", options, logProbsKeys)
  const { needs = [], temperature = 1 } = options
  if (needs.length > 0) throw cannot(`report the ${needs.join(" and ")}`, "choose a loss that needs none")
  checkRows(rows, temperature)
}

function checkFinite(logProbs: Float32Array): void {
  if (!logProbs.every(Number.isFinite))
    throw new GigpoError(
      "NON_FINITE",
      "The engine's log-probabilities are not finite: go back to an earlier checkpoint.",
    )
}

/** Concatenated log-probabilities of all sequences. Throws if any is not finite. */
function finite(scores: readonly Float32Array[]): Float32Array {
  const all = joined(Float32Array, scores)
  checkFinite(all)
  return all
}

function readOpenOptions(given: RemoteEngineOptions) {
  checkArguments("RemoteEngine.open", given)
  const { capabilities, onWarning, ...rest } = given
  return { ...readOptions("RemoteEngine.open", rest, openFields), capabilities, onWarning }
}
