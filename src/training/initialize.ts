import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { NativePolicy } from "../engine/native/native-policy.ts"
import type { Environment } from "../environment/environment.ts"
import { GigpoError } from "../errors.ts"
import { writeDirectory } from "../files/atomic-directory.ts"
import type { ModelConfig } from "../model-files/model-config.ts"
import { checkArguments, type KeysOf } from "../options/arguments.ts"
import { readOptions } from "../options/read.ts"
import type { Resolved } from "../options/table.ts"
import { Random } from "../random.ts"
import { playExpert } from "../rollout/expert.ts"
import { rolloutDefaults } from "../rollout/options.ts"
import { takeTasks } from "../rollout/tasks.ts"
import { Tokenizer } from "../tokenizer/tokenizer.ts"
import { trainByteLevelTokenizer } from "../tokenizer/train.ts"
import { writeTokenizer } from "../tokenizer/write.ts"
import { type InitializeOptions, initializeFields } from "./options.ts"

export type { InitializeOptions } from "./options.ts"

export interface InitializeSetup {
  /** Where the model is written; must not exist, unless `overwrite`. */
  readonly directory: string
  readonly environment: Environment
  readonly options?: InitializeOptions
  readonly overwrite?: boolean
}

const setupKeys: KeysOf<InitializeSetup> = { directory: true, environment: true, options: true, overwrite: true }

/**
 * Makes a small model for an environment, with random weights and a byte-level tokenizer of its own, in Hugging Face layout.
 * It can say nothing sensible yet: clone the environment's expert first.
 */
export async function initialize(setup: InitializeSetup): Promise<{ parameters: number; vocabularySize: number }> {
  checkArguments("initialize", setup, setupKeys)
  const { directory, environment, overwrite = false } = setup
  if (typeof directory !== "string" || directory === "")
    throw new GigpoError("BAD_ARGUMENT", "initialize needs the directory that the model is written to.")
  const options = readOptions("initialize", setup.options, initializeFields)
  const random = new Random(options.seed).fork("initialize")
  const texts = await sampleTexts(environment, random)
  const bpe = trainByteLevelTokenizer(texts.flat(), { vocabularySize: options.vocabularySize })
  let made = { parameters: 0, vocabularySize: 0 }
  await writeDirectory(
    directory,
    async (temporary) => {
      await writeTokenizer(temporary, bpe)
      await using tokenizer = await Tokenizer.open(temporary)
      const lengths = texts.map(([prompt]) => tokenizer.encode(prompt!).length)
      const config = modelConfig(tokenizer.vocabularySize, Math.max(...lengths), options)
      await using policy = await NativePolicy.create(config, random.fork("weights"), {
        deviation: options.deviation ?? 1 / Math.sqrt(config.hiddenSize),
        device: "cpu", // the same weights on every machine
        training: false,
      })
      await policy.save(temporary)
      await writeGenerationConfig(temporary, tokenizer.eosTokens)
      made = { parameters: policy.parameters, vocabularySize: config.vocabularySize }
    },
    { overwrite },
  )
  return made
}

/** Tells transformers where replies end; config.json does not. */
async function writeGenerationConfig(directory: string, eosTokens: readonly number[]): Promise<void> {
  const text = `${JSON.stringify({ eos_token_id: eosTokens }, null, 2)}\n`
  await writeFile(join(directory, "generation_config.json"), text)
}

function modelConfig(
  vocabularySize: number,
  longestPrompt: number,
  options: Resolved<typeof initializeFields>,
): ModelConfig {
  const { hiddenSize, layers, heads } = options
  if (hiddenSize % (2 * heads) !== 0)
    throw new GigpoError("BAD_ARGUMENT", `hiddenSize (${hiddenSize}) must be a multiple of 2 × heads (${heads}).`)
  return {
    architecture: "Qwen3",
    vocabularySize,
    hiddenSize,
    intermediateSize: options.intermediateSize ?? 3 * hiddenSize,
    layers,
    heads,
    keyValueHeads: options.keyValueHeads ?? heads,
    headSize: hiddenSize / heads,
    rmsNormEpsilon: 1e-6,
    ropeTheta: 10_000,
    tieEmbeddings: true,
    queryKeyValueBias: false,
    queryKeyNorm: true,
    maxPositions: options.maxPositions ?? Math.max(256, 4 * longestPrompt),
  }
}

const sampledTasks = 64

/** Prompts and expert replies of some training tasks: what the tokenizer is learned from, [prompt, reply] each. */
async function sampleTexts(environment: Environment, random: Random): Promise<[string, string][]> {
  const texts: [string, string][] = []
  for (const [index, task] of takeTasks(environment, "train", random.fork("tasks"), sampledTasks).entries()) {
    const expert = { ...rolloutDefaults, environment, task, random: random.fork("environment", index) }
    for await (const { messages, reply } of playExpert(expert)) {
      // With the words of the chat template, so that each of them becomes one token too.
      const prompt = messages.map((message) => `${message.role}\n${message.content}\n`).join("")
      texts.push([`${prompt}assistant\n`, reply])
    }
  }
  return texts
}
