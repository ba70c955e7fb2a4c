import { randomBytes } from "node:crypto"
import { RawJson } from "../json/raw.ts"
import { stringify } from "../json/text.ts"
import { unreadVariable } from "../tokenizer/chat-options.ts"
import { type ChatTemplates, ChatWriter } from "../tokenizer/chat-writer.ts"
import { NotRendered } from "../tokenizer/not-rendered.ts"
import type { ChatMessage } from "../tokenizer/tokenizer.ts"
import { GigpoError } from "../util/errors.ts"
import { joined } from "../util/joined.ts"
import { ApiError, badField } from "./api-error.ts"
import type { Call, CallMessage, Tool } from "./call.ts"
import type { Continued } from "./transcript.ts"

/** What of a tokenizer the endpoint needs. */
export interface PromptCodec extends ChatTemplates {
  readonly eosTokens: readonly number[]
}

/** Stands for a reply in the template's hands; nobody else can write it. */
const mark = `\u{e000}${randomBytes(12).toString("hex")}\u{e001}`

/**
 * The tokens of a call's prompt. What the template writes is tokenised; replies stand in it by the ids that were sampled, however the
 * client has written them down. A call that goes on from an earlier one begins with exactly that one's prompt and reply. `text` is what
 * the template wrote.
 *
 * @throws TooManyTokens where a part of it has more than `most` tokens
 */
export async function promptTokens(
  codec: PromptCodec,
  call: Call,
  { replies, tip }: Continued,
  most?: number,
): Promise<{ readonly tokens: Int32Array; readonly text: string }> {
  const messages = call.messages.map((message, index) =>
    replies[index] ? { role: "assistant", content: mark } : forTemplate(message),
  )
  const offered = toolVariables(call.toolChoice === "none" ? [] : call.tools)
  const writer = await ChatWriter.of(codec, messages, { ...variablesFor(codec, call.variables ?? {}), ...offered })
  const rendered = await writer.write().catch((error: unknown) => {
    throw refusedByTemplate(error)
  })
  const parts = rendered.split(mark)
  const said = replies.filter((reply) => reply !== undefined)
  if (parts.length !== said.length + 1)
    throw new ApiError(400, "The model's chat template leaves out some of these messages; send others.", {
      param: "messages",
    })
  const before = replies.slice(0, tip + 1).filter((reply) => reply !== undefined).length
  // Templates open a thought before a reply that is to come, and not before one that has been given.
  const opened = parts.map((part, index) => {
    const opening = index + 1 > before ? (said[index]?.opening ?? "") : ""
    return part.endsWith(opening) ? part : part + opening
  })
  const pieces: Int32Array[] = []
  if (tip >= 0) pieces.push(replies[tip]!.prompt)
  else pieces.push(await writer.encodePaced(opened[0]!, most))
  for (const [index, reply] of said.entries()) {
    if (index + 1 < before) continue // within the prompt of the tip
    pieces.push(reply.tokens, behind(codec, reply.tokens, await writer.encodePaced(opened[index + 1]!, most)))
  }
  return { tokens: joined(Int32Array, pieces), text: writer.plain(rendered) }
}

/** @throws ApiError where the template reads no such variable: what it asks for would be ignored */
export function variablesFor(
  { chatTemplate = "", toolTemplate = "" }: Pick<ChatTemplates, "chatTemplate" | "toolTemplate">,
  variables: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const unread = unreadVariable(variables, `${chatTemplate}\n${toolTemplate}`)
  if (unread === undefined) return variables
  throw badField(`chat_template_kwargs.${unread}`, "is not read by the model's chat template: leave it out")
}

/** Some templates want roles to take turns, say. Which file it is in is not the client's to know. */
export function refusedByTemplate(error: unknown): unknown {
  if (!GigpoError.is(error)) return error
  if (error.code === "TEMPLATE_TIMEOUT")
    return new ApiError(503, "The model's chat template took too long; try again, or with fewer messages.")
  if (error instanceof NotRendered) return new ApiError(400, `${error.message}.`, { param: error.field })
  if (error.code !== "BAD_TOKENIZER") return error
  const why = /failed: (.*)$/s.exec(error.message)?.[1] ?? "it takes no such messages"
  return new ApiError(400, `The model's chat template failed: ${why}.`, { param: "messages" })
}

/** What follows a reply. One that ended by itself holds the token that ends its turn, which the template writes, too. */
function behind(codec: PromptCodec, reply: Int32Array, tokens: Int32Array): Int32Array {
  const ended = codec.eosTokens.includes(reply.at(-1)!)
  return ended && codec.eosTokens.includes(tokens[0]!) ? tokens.subarray(1) : tokens
}

/** What tells a chat template of tools. */
export function toolVariables(tools: readonly Tool[]): { readonly tools?: readonly object[] } {
  if (tools.length === 0) return {}
  return { tools: tools.map(({ told }) => new RawJson(stringify(told))) }
}

/** As chat templates take messages: arguments are objects, of JSON as it was written. */
export function forTemplate(message: CallMessage): ChatMessage {
  switch (message.role) {
    case "assistant": {
      const { role, content, name, reasoning, toolCalls } = message
      const calls = toolCalls.map(({ id, name, arguments: given }) => ({
        id,
        type: "function",
        function: { name, arguments: new RawJson(given) },
      }))
      return {
        role,
        content,
        ...(name !== undefined && { name }),
        ...(reasoning !== undefined && { reasoning_content: reasoning }),
        ...(calls.length > 0 && { tool_calls: calls }),
      }
    }
    case "tool": {
      const { toolCallId, ...rest } = message
      return { ...rest, tool_call_id: toolCallId }
    }
    default:
      return message
  }
}
