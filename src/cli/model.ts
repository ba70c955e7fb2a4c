import { NativePolicy } from "../engine/native/native-policy.ts"
import { Tokenizer } from "../tokenizer/tokenizer.ts"
import { type Config, policyOptions, trainingOptions } from "./config/config.ts"

/** A model folder, opened: what samples and what reads. */
export interface Model extends AsyncDisposable {
  readonly policy: NativePolicy
  readonly tokenizer: Tokenizer
}

/** Opens the configured model to be trained, with room for what is needed beside it. */
export function openModel(config: Config, signal: AbortSignal, needs: ReadonlySet<string> = new Set()): Promise<Model> {
  return open(config.model, { ...trainingOptions(config, needs), signal })
}

/** Opens the configured model, or another one in its place, to be sampled from. Whether it has an adapter its folder says. */
export function openPlayer(config: Config, signal: AbortSignal, directory: string = config.model): Promise<Model> {
  const { lora: _, ...options } = policyOptions(config)
  return open(directory, { ...options, training: false, base: config.model, signal })
}

async function open(directory: string, options: Parameters<typeof NativePolicy.open>[1]): Promise<Model> {
  // The smaller part first: a wrong folder is told before gigabytes are read.
  const tokenizer = await Tokenizer.open(directory)
  return await openBeside(tokenizer, async () => {
    options?.signal?.throwIfAborted()
    return await NativePolicy.open(directory, options)
  })
}

/** A model whose tokenizer is open already, which is closed with it, or where it cannot be opened. */
export async function openBeside(tokenizer: Tokenizer, open: () => Promise<NativePolicy>): Promise<Model> {
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

export { configuredPlayer, openConfiguredEnvironment } from "./config/modules.ts"
