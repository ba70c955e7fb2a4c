import { basename } from "node:path"

/**
 * Returns the Modelfile with which Ollama imports a GGUF file (`ollama create NAME -f FILE`). Ollama takes the chat template from the
 * file.
 *
 * @param stops - texts of the tokens that end a completion.
 */
export function modelfile(gguf: string, stops: readonly string[]): string {
  const lines = [`FROM ./${basename(gguf)}`, ...stops.map((stop) => `PARAMETER stop ${JSON.stringify(stop)}`)]
  return `${lines.join("\n")}\n`
}
