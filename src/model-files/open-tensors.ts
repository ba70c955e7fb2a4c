import { isGguf } from "./gguf/is-gguf.ts"
import type { ModelConfig } from "./model-config.ts"
import { openSafetensors, type TensorFiles } from "./safetensors.ts"

/**
 * Opens the weights of a model: the safetensors files of a folder, or a GGUF file. Tensors have Hugging Face names in both cases.
 *
 * @throws GigpoError `BAD_MODEL`, `IO`
 */
export async function openTensors(path: string, config: ModelConfig): Promise<TensorFiles> {
  if (!(await isGguf(path))) return await openSafetensors(path)
  const [{ openGguf }, { ggufTensors }] = await Promise.all([import("./gguf/open.ts"), import("./gguf/tensors.ts")])
  return ggufTensors(await openGguf(path), config)
}
