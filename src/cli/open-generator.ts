import { resolve } from "node:path"
import { type Command, InvalidArgumentError } from "commander"
import type { CompletionGenerator } from "../chat/completion-generator.ts"
import { plainGenerator } from "../chat/plain-generator.ts"
import { NativePolicy } from "../engine/native/native-policy.ts"
import type { NativePolicyOptions } from "../engine/native/options.ts"
import { readAdapterConfig } from "../model-files/adapter-files.ts"
import { withoutUnmatched } from "../model-files/adapter-layout.ts"
import { readModelConfig } from "../model-files/model-config.ts"
import { checkModelFolder } from "../model-files/model-folder.ts"
import { without } from "../options/fixed.ts"
import { readTable, refusal } from "../options/read.ts"
import type { ChatOptions } from "../tokenizer/chat-options.ts"
import { Tokenizer } from "../tokenizer/tokenizer.ts"
import { setOption, wholeNumber } from "./arguments.ts"
import { chatOf } from "./chat-of.ts"
import { applySet, parseConfigDocument } from "./config/document.ts"
import { configFields, policyFields } from "./config/fields.ts"
import { localModel } from "./hub.ts"
import { type Model, openBeside, resolveModel } from "./model.ts"
import { activity } from "./terminal/activity.ts"

// Shared parts of the commands that sample from a model outside of training: chat and serve.

export interface GenerationArguments {
  readonly adapter?: string
  readonly temperature: number
  readonly maxTokens: number
  readonly set: readonly string[]
}

/** Options of a policy that matter for sampling. */
const samplingFields = {
  ...without(policyFields, "microBatchTokens", "maxTrainTokens", "recompute", "optimizerPrecision", "sharePrefixes"),
  chat: configFields.chat,
}

export function generationOptions(command: Command): Command {
  return command
    .argument(
      "<model>",
      "folder of a model, an adapter or a run (its model, or a newer checkpoint), a GGUF file, or a name on the Hugging Face Hub",
    )
    .option("-a, --adapter <folder>", "folder of a LoRA adapter for the model, or a name on the Hub")
    .option("-t, --temperature <number>", "sampling temperature from 0 (greedy) to 2", readTemperature, 1)
    .option("-n, --max-tokens <count>", "maximum tokens of a completion", wholeNumber(1, 2 ** 31 - 1), 1024)
    .addOption(setOption(`${Object.keys(samplingFields).join(", ")}: e.g. device=cpu; repeatable`))
}

/** Opened model with a completion generator. */
export interface OpenedModel extends Model {
  readonly generator: CompletionGenerator
}

/**
 * Opens the named model. The chat template is rendered once before the weights are read.
 *
 * @param chats - whether a chat template is required
 * @throws GigpoError `BAD_CONFIG` for settings, `BAD_MODEL`, `BAD_TOKENIZER`, `OUT_OF_MEMORY`, `DEVICE_UNAVAILABLE`
 */
export async function openGenerator(
  named: string,
  { adapter, temperature, maxTokens, set }: GenerationArguments,
  signal: AbortSignal,
  chats = true,
): Promise<OpenedModel> {
  const { chat, ...sampling } = readSettings(set)
  const options = { ...sampling, training: false, signal }
  const directory = await resolveModel(named, signal)
  const tokenizer = await Tokenizer.open(directory, { chat: await chatOf(resolve(directory), chat) })
  const opening = async () => {
    if (chats || tokenizer.chatTemplate !== undefined) await tokenizer.renderChat([{ role: "user", content: "Hello" }])
    signal.throwIfAborted()
    if (adapter === undefined) return await NativePolicy.open(directory, options)
    return await openAdapted(directory, adapter, options)
  }
  const model = await activity.during(`opening the model ${directory}`, () => openBeside(tokenizer, opening))
  try {
    tokenizer.checkVocabulary(model.policy.vocabularySize)
  } catch (error) {
    await model[Symbol.asyncDispose]()
    throw error
  }
  return {
    ...model,
    generator: plainGenerator({ ...model, codec: tokenizer, temperature, maxCompletionTokens: maxTokens }),
  }
}

function readSettings(sets: readonly string[]): NativePolicyOptions & { readonly chat?: ChatOptions | undefined } {
  const parsed = parseConfigDocument("{}", "--set")
  for (const set of sets) applySet(parsed, set)
  const { value, complaints } = readTable(parsed.document.toJS(), samplingFields, "file")
  if (complaints.length > 0) throw refusal("BAD_CONFIG", "--set", complaints, () => "--set")
  return value
}

/** Opens a model with an adapter. The base model that the adapter names is ignored; its shape must match. */
async function openAdapted(
  directory: string,
  named: string,
  options: NativePolicyOptions & { readonly signal: AbortSignal },
): Promise<NativePolicy> {
  const adapter = await localModel(named, options)
  await checkModelFolder(adapter)
  const { config } = await readAdapterConfig(adapter)
  const lora = withoutUnmatched(await readModelConfig(directory), config)
  const policy = await NativePolicy.open(directory, { ...options, lora })
  try {
    await policy.loadAdapter(adapter)
    return policy
  } catch (error) {
    await policy.dispose()
    throw error
  }
}

function readTemperature(text: string): number {
  const value = Number(text)
  if (text.trim() !== "" && value >= 0 && value <= 2) return value
  throw new InvalidArgumentError("It must be a number from 0 to 2.")
}
