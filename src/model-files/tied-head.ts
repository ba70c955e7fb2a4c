import { warnOnce } from "./known-keys.ts"
import type { ModelConfig } from "./model-config.ts"
import type { TensorFiles } from "./safetensors.ts"

const embedding = "model.embed_tokens.weight"
const head = "lm_head.weight"

/**
 * Returns the configuration corrected by the weights: where it ties the head to the embedding but the files have a head that
 * differs, the model is untied, as in transformers 5.
 */
export async function settleHead(config: ModelConfig, files: TensorFiles): Promise<ModelConfig> {
  if (!config.tieEmbeddings || !files.names.includes(head) || !files.names.includes(embedding)) return config
  if (await isSameTensor(files, embedding, head)) return config
  warnOnce(
    `${head} differs from ${embedding}, though tie_word_embeddings is true: the model is used with an untied head. Set ` +
      "tie_word_embeddings to false in config.json to silence this warning.",
  )
  return { ...config, tieEmbeddings: false }
}

/** Whether two tensors have the same type, shape and bits. */
export async function isSameTensor(files: TensorFiles, first: string, second: string): Promise<boolean> {
  const [one, other] = [files.info(first), files.info(second)]
  if (one.dtype !== other.dtype || one.shape.join() !== other.shape.join()) return false
  const others = files.read(second)
  for await (const chunk of files.read(first)) {
    const { value } = await others.next()
    if (!value || Buffer.compare(chunk, value) !== 0) return false
  }
  return true
}
