import { isGguf, openGguf } from "./gguf/open.ts"
import { ggufTensors } from "./gguf/tensors.ts"
import type { ModelConfig } from "./model-config.ts"
import { openSafetensors, type TensorFiles } from "./safetensors.ts"

/**
 * Opens the weights of a model: the safetensors files of a folder, or a GGUF file. Tensors have Hugging Face names in both cases.
 *
 * @throws GigpoError `BAD_MODEL`, `IO`
 */
export async function openTensors(path: string, config: ModelConfig): Promise<TensorFiles> {
  return (await isGguf(path)) ? ggufTensors(await openGguf(path), config) : await openSafetensors(path)
}
