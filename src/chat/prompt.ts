import { randomBytes } from "node:crypto"
import { RawJson } from "../json/raw.ts"
import { stringify } from "../json/text.ts"
import { unreadVariable } from "../tokenizer/chat-options.ts"
import { type ChatTemplates, ChatWriter } from "../tokenizer/chat-writer.ts"
import { encodePaced } from "../tokenizer/encoder.ts"
import { NotRendered } from "../tokenizer/not-rendered.ts"
import { TextOnly } from "../tokenizer/text-only.ts"
import type { ChatMessage } from "../tokenizer/tokenizer.ts"
import { GigpoError } from "../util/errors.ts"
import { joined } from "../util/joined.ts"
import { Pace } from "../util/pace.ts"
import { ApiError, badField } from "./api-error.ts"
import { type Call, type CallMessage, offered, type Tool } from "./call.ts"
import type { Continued } from "./transcript.ts"

/** Part of a tokenizer that the endpoint needs. */
export interface PromptCodec extends ChatTemplates {
  readonly eosTokens: readonly number[]
  /** Tokens that precede a text without a chat template, such as the one that begins a text. Default: none */
  readonly textPrefix?: Int32Array | undefined
}

/** Placeholder for a completion in the template's input; unguessable for clients. */
const mark = `\u{e000}${randomBytes(12).toString("hex")}\u{e001}`

/**
 * Tokens of a call's prompt. Text of the template is tokenized; completions are inserted by the ids that were sampled,
 * whatever text the client sent. A call that continues an earlier one starts with exactly its prompt and completion, without image tokens in
 * the completion.
 * `text` is the rendered template.
 *
 * @throws TooManyTokens if a part has more than `most` tokens
 */
export async function promptTokens(
  codec: PromptCodec,
  call: Call,
  { completions, tip }: Continued,
  most?: number,
): Promise<{ readonly tokens: Int32Array; readonly text: string; readonly attachments?: readonly unknown[] }> {
  if (call.raw) return await rawPrompt(codec, call.messages[0]!.content, most)
  const { writer, rendered } = await render(codec, call, completions)
  const parts = rendered.split(mark)
  const knownCompletions = completions.filter((completion) => completion !== undefined)
  if (parts.length !== knownCompletions.length + 1)
    throw new ApiError(400, "The model's chat template leaves out some of these messages; change the messages.", {
      param: "messages",
    })
  const before = completions.slice(0, tip + 1).filter((completion) => completion !== undefined).length
  // Templates open a thought before a completion to be sampled, and not before an earlier one.
  const opened = parts.map((part, index) => {
    const opening = index + 1 > before ? (knownCompletions[index]?.opening ?? "") : ""
    return part.endsWith(opening) ? part : part + opening
  })
  const withoutMarks = await imageTokenFilter(codec)
  const pieces: Int32Array[] = []
  if (tip >= 0) pieces.push(completions[tip]!.prompt)
  else pieces.push(await writer.encodePaced(opened[0]!, most))
  for (const [index, completion] of knownCompletions.entries()) {
    if (index + 1 < before) continue // contained in the prompt of the tip
    pieces.push(
      withoutMarks(completion.tokens),
      behind(codec, completion.tokens, await writer.encodePaced(opened[index + 1]!, most)),
    )
  }
  const { images } = writer
  return {
    ...{ tokens: joined(Int32Array, pieces), text: writer.plain(rendered) },
    ...(images.length > 0 && { attachments: images }),
  }
}

/**
 * Function that leaves out image tokens which a vision-language model has sampled. Those of a prompt are the places of its images, so a
 * sampled one would have none. The text of the completion does not contain it, since it is a special token.
 */
async function imageTokenFilter(codec: PromptCodec): Promise<(tokens: Int32Array) => Int32Array> {
  const prepared = await codec.images?.()
  if (!prepared) return (tokens) => tokens
  const [imageToken] = codec.encode(prepared.processor.placeholder)
  return (tokens) => (tokens.includes(imageToken!) ? tokens.filter((token) => token !== imageToken) : tokens)
}

async function render(
  codec: PromptCodec,
  call: Call,
  completions: Continued["completions"],
): Promise<{ readonly writer: ChatWriter; readonly rendered: string }> {
  const messages = call.messages.map((message, index) =>
    completions[index] ? { role: "assistant", content: mark } : forTemplate(message),
  )
  const variables = { ...variablesFor(codec, call.variables ?? {}), ...toolVariables(offered(call)) }
  const writer = await ChatWriter.of(codec, messages, variables, call.client)
  try {
    return { writer, rendered: await writer.write() }
  } catch (error) {
    const unnamed = error instanceof NotRendered ? withoutToolNames(call.messages) : call.messages
    if (unnamed === call.messages) throw refusedByTemplate(error)
    return await render(codec, { ...call, messages: unnamed }, completions)
  }
}

/**
 * Messages without the names of tools at their results, which some clients add to the ids of the calls; the same list if
 * there are none. A name that differs from that of the call stays.
 */
function withoutToolNames(messages: readonly CallMessage[]): readonly CallMessage[] {
  const called = new Map(
    messages.flatMap((message) =>
      message.role === "assistant" ? message.toolCalls.map(({ id, name }) => [id, name] as const) : [],
    ),
  )
  const isNamed = (message: CallMessage) =>
    message.role === "tool" && message.name !== undefined && message.name === called.get(message.toolCallId)
  if (!messages.some(isNamed)) return messages
  return messages.map((message) => {
    if (!isNamed(message)) return message
    const { name: _, ...unnamed } = message
    return unnamed
  })
}

/** Prompt that the client has written itself, with the tokens that precede a text of this model. */
async function rawPrompt(
  codec: PromptCodec,
  text: string,
  most: number | undefined,
): Promise<{ readonly tokens: Int32Array; readonly text: string }> {
  const { textPrefix: before = new Int32Array() } = codec
  const own = await encodePaced(codec, text, new Pace(), { most })
  const isThere = before.every((token, at) => own[at] === token)
  return { tokens: isThere ? own : joined(Int32Array, [before, own]), text }
}

/** @throws ApiError if the template does not read a variable, which would be ignored */
export function variablesFor(
  { chatTemplate = "", toolTemplate = "" }: Pick<ChatTemplates, "chatTemplate" | "toolTemplate">,
  variables: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const unread = unreadVariable(variables, `${chatTemplate}\n${toolTemplate}`)
  if (unread === undefined) return variables
  throw badField(`chat_template_kwargs.${unread}`, "is not read by the model's chat template: leave it out")
}

/**
 * Error for a client if the template rejects messages, such as roles that do not alternate. The name of the file is
 * withheld.
 */
export function refusedByTemplate(error: unknown): unknown {
  if (!GigpoError.is(error)) return error
  if (error.code === "TEMPLATE_TIMEOUT")
    return new ApiError(503, "The model's chat template took too long; try again, or with fewer messages.")
  if (error instanceof TextOnly)
    return badField(
      error.field,
      "has an image, but the model reads text only: send text, or choose a vision-language model",
    )
  if (error.code === "BAD_DATA") return new ApiError(400, error.message, { param: "messages" })
  if (error instanceof NotRendered) return new ApiError(400, `${error.message}.`, { param: error.field })
  if (error.code !== "BAD_TOKENIZER") return error
  if (/has no chat template/.test(error.message))
    return new ApiError(400, "The model has no chat template: use /v1/completions, or /api/generate with raw: true.")
  const why = /failed: (.*)$/s.exec(error.message)?.[1] ?? "it does not support these messages"
  return new ApiError(400, `The model's chat template failed: ${why}.`, { param: "messages" })
}

/**
 * Tokens after a completion. A completion that ended with an end token contains it already; the template writes it,
 * too.
 */
function behind(codec: PromptCodec, completion: Int32Array, tokens: Int32Array): Int32Array {
  const ended = codec.eosTokens.includes(completion.at(-1)!)
  return ended && codec.eosTokens.includes(tokens[0]!) ? tokens.subarray(1) : tokens
}

/** Variables of the chat template for tools. */
export function toolVariables(tools: readonly Tool[]): { readonly tools?: readonly object[] } {
  if (tools.length === 0) return {}
  return { tools: tools.map(({ definition }) => RawJson.known(stringify(definition))) }
}

/** Message as chat templates expect it: arguments are objects, with JSON as written. */
export function forTemplate(message: CallMessage): ChatMessage {
  switch (message.role) {
    case "assistant": {
      const { role, content, name, reasoning, toolCalls } = message
      const calls = toolCalls.map(({ id, name, arguments: given }) => ({
        id,
        type: "function",
        function: { name, arguments: RawJson.known(given) },
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
