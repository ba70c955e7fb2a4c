import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { NativePolicy } from "../engine/native/native-policy.ts"
import { writeDirectory } from "../files/atomic-directory.ts"
import { qwenImageMarks } from "../image-processor/marks.ts"
import { newModel } from "../model-files/families.ts"
import type { ModelConfig } from "../model-files/model-config.ts"
import { checkArguments, type KeysOf } from "../options/arguments.ts"
import { readOptions } from "../options/read.ts"
import type { ResolvedOf } from "../options/table.ts"
import { Tokenizer } from "../tokenizer/tokenizer.ts"
import { trainByteLevelTokenizer } from "../tokenizer/train.ts"
import { GigpoError } from "../util/errors.ts"
import { Random } from "../util/random.ts"
import type { InitializeModelResult, InitializeModelSetup } from "./initialize.ts"
import { initializeFields } from "./initialize-options.ts"
import { agentSamples, environmentSamples, hasImages, longestPrompt } from "./initialize-samples.ts"
import { checkVisionOptions, newTower, specialsOf, writeImageIds, writeTokenizerFiles } from "./initialize-vision.ts"

const setupKeys: KeysOf<InitializeModelSetup> = {
  directory: true,
  environment: true,
  agent: true,
  normalize: true,
  expert: true,
  options: true,
  overwrite: true,
  signal: true,
  onExpert: true,
  onWarning: true,
}

/** Creates the model; see `initializeModel`. */
export async function initializeModel<Task>(setup: InitializeModelSetup<Task>): Promise<InitializeModelResult> {
  checkArguments("initializeModel", setup, setupKeys)
  const { directory, overwrite = false, signal } = setup
  if (typeof directory !== "string" || directory === "")
    throw new GigpoError("BAD_ARGUMENT", "initializeModel needs a directory: the folder that the model is written to.")
  const options = readOptions("initializeModel", setup.options, initializeFields)
  const { vision, vocabularySize } = options
  checkSizes(options)
  const random = new Random(options.seed).derive("initialize")
  const samples = await ((setup.agent ?? setup.expert) ? agentSamples : environmentSamples)(setup, random, vision)
  if (vision && !samples.some(hasImages)) throw withoutImages(setup.environment.name)
  const texts = samples.flatMap(({ prompt, completion }) => [prompt, completion])
  const bpe = await trainByteLevelTokenizer(texts, { vocabularySize, ...specialsOf(vision), signal })
  let made = { parameters: 0, vocabularySize: 0, longestCompletion: 0 }
  await writeDirectory(
    directory,
    async (temporary) => {
      await writeTokenizerFiles(temporary, bpe, vision)
      await using tokenizer = await Tokenizer.open(temporary)
      const config = modelConfig(tokenizer, await longestPrompt(samples, tokenizer), options)
      await using policy = await NativePolicy.create(config, random.derive("weights"), {
        deviation: options.initStd ?? 1 / Math.sqrt(config.hiddenSize),
        device: "cpu", // the same weights on every machine
        training: false,
        signal,
      })
      signal?.throwIfAborted()
      await policy.store.save(temporary)
      if (vision) await writeImageIds(temporary, config, tokenizer)
      await writeGenerationConfig(temporary, tokenizer.eosTokens)
      const longestCompletion = Math.max(1, ...samples.map(({ completion }) => tokenizer.encode(completion).length + 1))
      made = { parameters: policy.parameters, vocabularySize: config.vocabularySize, longestCompletion }
      return { made: "initialize", environment: setup.environment.name }
    },
    { overwrite },
  )
  return made
}

/** Writes the end tokens for transformers, since config.json does not contain them. */
async function writeGenerationConfig(directory: string, eosTokens: readonly number[]): Promise<void> {
  const text = `${JSON.stringify({ eos_token_id: eosTokens }, null, 2)}\n`
  await writeFile(join(directory, "generation_config.json"), text)
}

type Options = ResolvedOf<typeof initializeFields>

function checkSizes({ hiddenSize, heads, vision }: Options): void {
  if (hiddenSize % (2 * heads) !== 0)
    throw new GigpoError("BAD_ARGUMENT", `hiddenSize (${hiddenSize}) must be a multiple of 2 × heads (${heads}).`)
  if (vision) checkVisionOptions(vision)
}

function modelConfig(tokenizer: Tokenizer, longest: number, options: Options): ModelConfig {
  const { hiddenSize, layers, heads, vision } = options
  const headSize = hiddenSize / heads
  return newModel({
    vocabularySize: tokenizer.vocabularySize,
    hiddenSize,
    intermediateSize: options.intermediateSize ?? 3 * hiddenSize,
    layers,
    heads,
    keyValueHeads: options.keyValueHeads ?? heads,
    headSize,
    maxPositions: options.maxPositions ?? Math.max(256, 4 * longest),
    ...(vision && { vision: newTower(vision, headSize, tokenizer.encode(qwenImageMarks.pad)[0]!) }),
  })
}

function withoutImages(name: string): GigpoError {
  return new GigpoError(
    "BAD_ARGUMENT",
    `vision is set, but the prompts of ${name} contain no images: set its option observation to "image" or "both", or leave vision out.`,
  )
}
