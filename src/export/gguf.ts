import { basename, resolve } from "node:path"
import { ggufName, ropeFactors } from "../model-files/gguf/families.ts"
import { llama3Factors } from "../model-files/gguf/rope-factors.ts"
import { type GgufSource, writeGguf } from "../model-files/gguf/write.ts"
import { type ModelConfig, readModelConfig } from "../model-files/model-config.ts"
import { checkModelFolder } from "../model-files/model-folder.ts"
import { checkTensors, tensorShapes } from "../model-files/model-tensors.ts"
import { openTensors } from "../model-files/open-tensors.ts"
import type { TensorFiles } from "../model-files/safetensors.ts"
import { settleHead } from "../model-files/tied-head.ts"
import { storeTokenizer } from "../tokenizer/gguf/store.ts"
import { Tokenizer } from "../tokenizer/tokenizer.ts"
import { conventionsOf, modelMetadata } from "./metadata.ts"
import { type Recipe, tensorType } from "./recipes.ts"
import { convertTensor } from "./tensors.ts"

/**
 * Writes a model with its tokenizer and chat template as one GGUF file for llama.cpp and Ollama.
 *
 * @param model - folder in Hugging Face layout.
 * @param path - file that is written; it must not exist.
 * @param onStops - called with the texts of the tokens that end a completion, before the file is there.
 * @throws GigpoError `BAD_MODEL`, `BAD_TOKENIZER` if the tokenizer has no name in llama.cpp, `NON_FINITE`, `IO`
 */
export async function exportGguf(
  model: string,
  path: string,
  recipe: Recipe,
  onStops: (stops: readonly string[]) => unknown = () => {},
): Promise<void> {
  await checkModelFolder(model)
  await using tokenizer = await Tokenizer.open(model)
  const stated = await readModelConfig(model)
  const files = await openTensors(model, stated)
  try {
    const config = await settleHead(stated, files)
    checkTensors(config, files)
    tokenizer.checkVocabulary(config.vocabularySize)
    const stored = await storeTokenizer(tokenizer.directory, config.vocabularySize, tokenizer.eosTokens)
    const metadata = new Map([...modelMetadata(config, basename(resolve(model)), recipe), ...stored])
    await onStops(tokenizer.eosTokens.map((id) => tokenizer.decode([id])))
    await writeGguf(path, metadata, [...scaling(config), ...sources(config, files, recipe)])
  } finally {
    await files.close()
  }
}

function sources(config: ModelConfig, files: TensorFiles, recipe: Recipe): GgufSource[] {
  const family = conventionsOf(config)
  return [...tensorShapes(config)].map(([name, shape]) => {
    const stored = ggufName(name, family)
    const type = tensorType(recipe, stored, shape, { layers: config.layers, tied: config.tieEmbeddings })
    return { name: stored, type, shape, chunks: () => convertTensor(files, name, type, { family, heads: config }) }
  })
}

/** Returns the tensor that stores Llama 3's scaling of the rotary frequencies in GGUF. */
function scaling({ ropeScaling, headSize, ropeTheta }: ModelConfig): GgufSource[] {
  if (ropeScaling?.type !== "llama3") return []
  const factors = llama3Factors(ropeScaling, headSize, ropeTheta)
  return [{ name: ropeFactors, type: "F32", shape: [factors.length], chunks: () => [new Uint8Array(factors.buffer)] }]
}
