import type { EngineSetup, OpenedEngine } from "../engine/custom-engine.ts"
import { NativePolicy } from "../engine/native/native-policy.ts"
import { remoteFields } from "../engine/remote/options.ts"
import { RemoteEngine } from "../engine/remote/remote-engine.ts"
import { newestModel } from "../model-files/run-models.ts"
import { only } from "../options/fixed.ts"
import type { ChatOptions } from "../tokenizer/chat-options.ts"
import { Tokenizer } from "../tokenizer/tokenizer.ts"
import { GigpoError } from "../util/errors.ts"
import { unlessAborted } from "../util/linked-abort.ts"
import { chatOf } from "./chat-of.ts"
import { type Config, policyOptions, trainingOptions } from "./config/config.ts"
import { isUsed, openConfiguredEngine } from "./config/modules.ts"
import { localModel } from "./hub.ts"
import { describePending } from "./pending.ts"
import { activity } from "./terminal/activity.ts"
import { Screen } from "./terminal/screen.ts"

/** Opened model folder: policy and tokenizer. */
export interface Model<P extends OpenedEngine = OpenedEngine> extends AsyncDisposable {
  readonly policy: P
  readonly tokenizer: Tokenizer
}

/** Precision that a run stores, so that resumption on another device uses the same. Other engines choose their own. */
export function precisionOf(policy: OpenedEngine): Pick<NativePolicy, "precision"> | undefined {
  return policy instanceof NativePolicy ? { precision: policy.precision } : undefined
}

/** One sentence about the device or server of a policy; undefined for the CPU and for the engine of a module. */
export function describePlace(policy: OpenedEngine): string | undefined {
  if (policy instanceof RemoteEngine) return `On the engine at ${policy.url}: ${policy.baseModel}.`
  if (!(policy instanceof NativePolicy) || policy.device === "cpu") return undefined
  const { gpus, memoryPlan } = policy
  return gpus.length > 1
    ? `On each of ${gpus.length} GPUs (cuda:${gpus.join()}): ${memoryPlan.text}.`
    : `On the GPU: ${memoryPlan.text}.`
}

/**
 * Path of a named model: for a run the newest state, for a name on the Hugging Face Hub the snapshot in the cache. The choice is reported
 * on standard error.
 */
export async function resolveModel(named: string, signal?: AbortSignal): Promise<string> {
  const { directory, about } = await newestModel(await localModel(named, { signal }))
  if (about !== undefined) new Screen(process.stderr, { live: false }).print(about)
  return directory === named ? directory : await localModel(directory, { signal })
}

/** Opens the configured model for training, with memory for what `needs` names. */
export function openModel(config: Config, signal: AbortSignal, needs: ReadonlySet<string> = new Set()): Promise<Model> {
  if (config.engine) return openEngine(config, config.engine, config.model, { needs, training: true, signal })
  return open(config.model, { ...trainingOptions(config, needs), signal }, config.chat)
}

/** Opens the configured model, or another one, for sampling. An adapter is detected from the folder. */
export async function openPlayer(
  config: Config,
  signal: AbortSignal,
  directory: string = config.model,
): Promise<Model> {
  if (config.engine) return openEngine(config, config.engine, directory, { needs: new Set(), training: false, signal })
  const { lora: _, ...options } = policyOptions(config)
  return await open(
    directory,
    { ...options, training: false, base: config.model, signal },
    await chatOf(directory, config.chat),
  )
}

async function open(
  directory: string,
  options: Parameters<typeof NativePolicy.open>[1],
  chat: ChatOptions | undefined,
): Promise<Model<NativePolicy>> {
  // The tokenizer comes first: a wrong folder fails before gigabytes of weights are read.
  return await activity.during(`opening the model ${directory}`, async () => {
    const tokenizer = await Tokenizer.open(directory, { chat })
    return await openBeside(tokenizer, async () => {
      options?.signal?.throwIfAborted()
      return await NativePolicy.open(directory, options)
    })
  })
}

/** Opens the configured engine, on a server or of a module. */
async function openEngine(
  config: Config,
  engine: NonNullable<Config["engine"]>,
  directory: string,
  use: Pick<EngineSetup, "training" | "needs" | "signal">,
): Promise<Model> {
  const { maxPositions, seed, lora, teacher, chat } = config
  if (lora)
    throw bad(
      `lora applies to the native engine only: leave it out${isUsed(engine) ? ", or open the adapter in the module of engine" : " and set engine.rank"}`,
    )
  if (teacher !== undefined) throw bad("A teacher needs the native engine: leave out teacher or engine")
  const tokenizer = await Tokenizer.open(directory, { chat })
  if (isUsed(engine)) {
    const { vocabularySize } = tokenizer
    const setup = { ...use, model: directory, vocabularySize, maxPositions, seed }
    return await openBeside(tokenizer, () => openConfiguredEngine(engine, setup))
  }
  const opened = () => RemoteEngine.open(directory, { ...only(engine, remoteFields), maxPositions, seed })
  const model = await openBeside(tokenizer, () =>
    activity.during(`the engine at ${engine.url}`, () => unlessAborted(use.signal, opened)),
  )
  return announced(model)
}

/** Adds an announcement of pending requests to a remote model, until it is closed. */
function announced(model: Model<RemoteEngine>): Model<RemoteEngine> {
  const work = activity.begin(() => describePending(model.policy))
  const dispose = async () => {
    activity.end(work)
    await model[Symbol.asyncDispose]()
  }
  return { ...model, [Symbol.asyncDispose]: dispose }
}

/** Opens a policy next to an opened tokenizer. The tokenizer is closed with the policy, or if opening fails. */
export async function openBeside<P extends OpenedEngine>(
  tokenizer: Tokenizer,
  open: () => Promise<P>,
): Promise<Model<P>> {
  try {
    const policy = await open()
    const dispose = async () => {
      await policy[Symbol.asyncDispose]?.()
      await tokenizer.dispose()
    }
    return { policy, tokenizer, [Symbol.asyncDispose]: dispose }
  } catch (error) {
    await tokenizer.dispose()
    throw error
  }
}

function bad(message: string): GigpoError {
  return new GigpoError("BAD_CONFIG", `${message}.`)
}

export { configuredPlayer, openConfiguredEnvironment } from "./config/modules.ts"
