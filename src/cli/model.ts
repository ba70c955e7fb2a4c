import { NativePolicy } from "../engine/native/native-policy.ts"
import { RemoteEngine } from "../engine/remote/remote-engine.ts"
import { newestModel } from "../model-files/run-models.ts"
import type { ChatOptions } from "../tokenizer/chat-options.ts"
import { Tokenizer } from "../tokenizer/tokenizer.ts"
import { GigpoError } from "../util/errors.ts"
import { unlessAborted } from "../util/linked-abort.ts"
import { chatOf } from "./chat-of.ts"
import { type Config, policyOptions, trainingOptions } from "./config/config.ts"
import { localModel } from "./hub.ts"
import { describePending } from "./pending.ts"
import { activity } from "./terminal/activity.ts"
import { Screen } from "./terminal/screen.ts"

/** What samples and learns: on this machine, or on a server. */
export type Policy = NativePolicy | RemoteEngine

/** A model folder, opened: what samples and what reads. */
export interface Model<P extends Policy = Policy> extends AsyncDisposable {
  readonly policy: P
  readonly tokenizer: Tokenizer
}

/** What a run keeps, so that it goes on in the same precision on another device: a server's is its own. */
export function precisionOf(policy: Policy): Pick<NativePolicy, "precision"> | undefined {
  return policy instanceof NativePolicy ? { precision: policy.precision } : undefined
}

/** Where it runs, in a sentence, where that is not the CPU. */
export function describePlace(policy: Policy): string | undefined {
  if (policy instanceof RemoteEngine) return `On the engine at ${policy.url}: ${policy.baseModel}.`
  return policy.device === "cuda" ? `On the GPU: ${policy.plan.text}.` : undefined
}

/**
 * The folder of a model that was named: of a run its newest state, of a name on the Hugging Face Hub its snapshot in the cache. Which one
 * is reported on standard error.
 */
export async function resolveModel(named: string, signal?: AbortSignal): Promise<string> {
  const { directory, about } = await newestModel(await localModel(named, { signal }))
  if (about !== undefined) new Screen(process.stderr, { live: false }).print(about)
  return directory === named ? directory : await localModel(directory, { signal })
}

/** Opens the configured model to be trained, with room for what is needed beside it. */
export function openModel(config: Config, signal: AbortSignal, needs: ReadonlySet<string> = new Set()): Promise<Model> {
  if (config.engine) return openRemote(config, signal, config.model)
  return open(config.model, { ...trainingOptions(config, needs), signal }, config.chat)
}

/** Opens the configured model, or another one in its place, to be sampled from. Whether it has an adapter its folder says. */
export async function openPlayer(
  config: Config,
  signal: AbortSignal,
  directory: string = config.model,
): Promise<Model> {
  if (config.engine) return openRemote(config, signal, directory)
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
  // The smaller part first: a wrong folder is told before gigabytes are read.
  return await activity.during(`opening the model ${directory}`, async () => {
    const tokenizer = await Tokenizer.open(directory, { chat })
    return await openBeside(tokenizer, async () => {
      options?.signal?.throwIfAborted()
      return await NativePolicy.open(directory, options)
    })
  })
}

async function openRemote(config: Config, signal: AbortSignal, directory: string): Promise<Model<RemoteEngine>> {
  const { engine, maxPositions, seed, lora, teacher, chat } = config
  if (lora) throw bad("lora is of this machine's engine: leave it out, and set engine.rank")
  if (teacher !== undefined) throw bad("A teacher would need this machine's engine: leave teacher out, or engine")
  const tokenizer = await Tokenizer.open(directory, { chat })
  const opened = () => RemoteEngine.open(directory, { ...engine!, maxPositions, seed })
  const model = await openBeside(tokenizer, () =>
    activity.during(`the engine at ${engine!.url}`, () => unlessAborted(signal, opened)),
  )
  return announced(model)
}

/** A model on a server, whose requests under way are announced until it is closed. */
function announced(model: Model<RemoteEngine>): Model<RemoteEngine> {
  const work = activity.begin(() => describePending(model.policy))
  const dispose = async () => {
    activity.end(work)
    await model[Symbol.asyncDispose]()
  }
  return { ...model, [Symbol.asyncDispose]: dispose }
}

/** A model whose tokenizer is open already, which is closed with it, or where it cannot be opened. */
export async function openBeside<P extends Policy>(tokenizer: Tokenizer, open: () => Promise<P>): Promise<Model<P>> {
  try {
    const policy = await open()
    const dispose = async () => {
      await policy.dispose()
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
