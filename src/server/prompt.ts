import { randomBytes } from "node:crypto"
import { GigpoError } from "../errors.ts"
import { joined } from "../joined.ts"
import type { ChatMessage } from "../tokenizer/tokenizer.ts"
import { ApiError } from "./api-error.ts"
import type { Call, CallMessage, Tool } from "./call.ts"
import type { Continued } from "./transcript.ts"

/** What of a tokenizer the endpoint needs. */
export interface PromptCodec {
  readonly eosTokens: readonly number[]
  renderChat(
    messages: readonly ChatMessage[],
    options: { readonly variables?: Readonly<Record<string, unknown>> },
  ): Promise<string>
  encode(text: string): Int32Array
}

/** Stands for a reply in the template's hands; nobody else can write it. */
const mark = `\u{e000}${randomBytes(12).toString("hex")}\u{e001}`

/**
 * The tokens of a call's prompt. What the template writes is tokenised; replies stand in it by the ids that were sampled, however the
 * client has written them down. A call that goes on from an earlier one begins with exactly that one's prompt and reply. `text` is what
 * the template wrote.
 */
export async function promptTokens(
  codec: PromptCodec,
  call: Call,
  { replies, tip }: Continued,
): Promise<{ readonly tokens: Int32Array; readonly text: string }> {
  const messages = call.messages.map((message, index) =>
    replies[index] ? { role: "assistant", content: mark } : forTemplate(message),
  )
  const offered = toolVariables(call.toolChoice === "none" ? [] : call.tools)
  const rendered = await codec.renderChat(messages, { variables: offered }).catch((error: unknown) => {
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
  else pieces.push(codec.encode(opened[0]!))
  for (const [index, reply] of said.entries()) {
    if (index + 1 < before) continue // within the prompt of the tip
    pieces.push(reply.tokens, behind(codec, reply.tokens, opened[index + 1]!))
  }
  return { tokens: joined(Int32Array, pieces), text: rendered }
}

/** Some templates want roles to take turns, say. Which file it is in is not the client's to know. */
export function refusedByTemplate(error: unknown): unknown {
  if (!GigpoError.is(error)) return error
  if (error.code === "TEMPLATE_TIMEOUT")
    return new ApiError(503, "The model's chat template took too long; try again, or with fewer messages.")
  if (error.code !== "BAD_TOKENIZER") return error
  const why = /failed: (.*)$/s.exec(error.message)?.[1] ?? "it takes no such messages"
  return new ApiError(400, `The model's chat template failed: ${why}.`, { param: "messages" })
}

/** What follows a reply. One that ended by itself holds the token that ends its turn, which the template writes, too. */
function behind(codec: PromptCodec, reply: Int32Array, text: string): Int32Array {
  const tokens = codec.encode(text)
  const ended = codec.eosTokens.includes(reply.at(-1)!)
  return ended && codec.eosTokens.includes(tokens[0]!) ? tokens.subarray(1) : tokens
}

/** What tells a chat template of tools. */
export function toolVariables(tools: readonly Tool[]): { readonly tools?: readonly object[] } {
  if (tools.length === 0) return {}
  const told = tools.map(({ name, description, parameters }) => ({
    type: "function",
    function: { name, ...(description !== undefined && { description }), parameters },
  }))
  return { tools: told }
}

/** As chat templates take messages: arguments are objects. */
export function forTemplate(message: CallMessage): ChatMessage {
  switch (message.role) {
    case "assistant": {
      const { role, content, reasoning, toolCalls } = message
      const calls = toolCalls.map(({ id, name, arguments: given }) => ({
        id,
        type: "function",
        function: { name, arguments: asObject(given) },
      }))
      return {
        role,
        content,
        ...(reasoning !== undefined && { reasoning_content: reasoning }),
        ...(calls.length > 0 && { tool_calls: calls }),
      }
    }
    case "tool":
      return { role: message.role, content: message.content, tool_call_id: message.toolCallId }
    default:
      return message
  }
}

function asObject(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return json
  }
}
