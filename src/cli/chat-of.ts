import { dirname, join } from "node:path"
import { isObject } from "../options/read.ts"
import { readRunConfig } from "../runs/config.ts"
import { dateIn } from "../runs/date.ts"
import type { ChatOptions } from "../tokenizer/chat-options.ts"

/** Returns the chat options for sampling from a model: the given ones, else those of the run that the model belongs to. */
export async function chatOf(model: string, given: ChatOptions = {}): Promise<ChatOptions> {
  // The model of a run is in the run folder, a checkpoint one folder deeper.
  for (const folder of [dirname(model), dirname(dirname(model))]) {
    const run = await readRunConfig(join(folder, "config.json"))
    if (!run) continue
    const { variables } = isObject(run.chat) ? (run.chat as ChatOptions) : {}
    return { variables: given.variables ?? variables, now: given.now ?? dateIn(run) }
  }
  return given
}
