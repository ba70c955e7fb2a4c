import { unreadVariable } from "../tokenizer/chat-options.ts"
import type { ChatTemplates } from "../tokenizer/chat-writer.ts"
import { badField } from "./api-error.ts"
import type { Call } from "./call.ts"

/** How much a client asks the model to think, and the field of the request: an effort, or only whether to think. */
export interface Thinking {
  readonly effort: string | boolean
  readonly field: string
}

/**
 * Call with the asked effort in the variables that chat templates have for it: `enable_thinking`, as Qwen3's, and
 * `reasoning_effort`, as that of gpt-oss. Variables of the request have precedence. A model without such a variable
 * thinks always or never, and is only asked for that.
 *
 * @throws ApiError for an effort that the chat template cannot express
 */
export function withThinking(
  { chatTemplate = "", toolTemplate = "" }: Pick<ChatTemplates, "chatTemplate" | "toolTemplate">,
  { thinking, ...call }: Call,
): Call {
  if (!thinking) return call
  const { effort, field } = thinking
  const source = `${chatTemplate}\n${toolTemplate}`
  const reads = (name: string) => unreadVariable({ [name]: true }, source) === undefined
  const [isOff, isLevel] = [effort === false || effort === "none", typeof effort === "string" && effort !== "none"]
  const variables = {
    ...(reads("enable_thinking") && { enable_thinking: !isOff }),
    ...(isLevel && reads("reasoning_effort") && { reasoning_effort: effort }),
    ...call.variables,
  }
  if (Object.keys(variables).length > 0) return { ...call, variables }
  if (isLevel) throw badField(field, "cannot be set: the model's chat template reads no such variable; leave it out")
  if (isOff && source.includes("<think>"))
    throw badField(field, "cannot turn thinking off: the model's chat template reads no such variable; leave it out")
  return call
}
