import { ApiError } from "../chat/api-error.ts"
import type { Call, CallMessage, ToolCall } from "../chat/call.ts"
import { readMessage } from "../chat/completions/read-messages.ts"
import { forTemplate, toolVariables } from "../chat/prompt.ts"
import type { ReplyCodec } from "../chat/reply-generator.ts"
import { schemaProblem } from "../chat/tools/check-schema.ts"
import { type ReplyReader, toolFormat } from "../chat/tools/format.ts"
import { splitReply, upToEnd } from "../chat/written-reply.ts"
import { canonicalJson } from "../json/numbers.ts"
import { stringify } from "../json/text.ts"
import { checkArguments, type KeysOf } from "../options/arguments.ts"
import { isObject } from "../options/read.ts"
import { ChatWriter } from "../tokenizer/chat-writer.ts"
import { GigpoError } from "../util/errors.ts"

/** An assistant's message as OpenAI's API has it. */
export interface ExpertMessage {
  readonly role?: "assistant"
  readonly content?: string | null
  readonly reasoning_content?: string | null
  readonly tool_calls?: readonly ExpertCall[] | null
}

/** Tool call in an expert's message. */
export interface ExpertCall {
  /** Default: one is made up. */
  readonly id?: string
  readonly type?: "function"
  /** `arguments` as an object, or as its JSON. */
  readonly function: { readonly name: string; readonly arguments: string | object }
}

/** What an expert replies: a message, which the model's chat template writes, or text in the model's own form. */
export type ExpertReply = string | ExpertMessage

type Said = Extract<CallMessage, { role: "assistant" }>

const keys: KeysOf<ExpertMessage> = { role: true, content: true, reasoning_content: true, tool_calls: true }

/**
 * The tokens of an expert's reply to a call, with the token that ends it.
 *
 * @throws GigpoError `BAD_ARGUMENT` for a reply that is neither a text nor a message, calls a tool that the call does not offer or with
 *   arguments that are not the tool's, or that the chat template does not write so that it is read as it was meant
 */
export async function replyTokens(codec: ReplyCodec, call: Call, reply: ExpertReply): Promise<Int32Array> {
  if (typeof reply === "string") return Int32Array.from([...codec.encode(reply), codec.eosTokens[0]!])
  return await written(codec, call, readExpertMessage(reply, call))
}

function readExpertMessage(reply: ExpertMessage, call: Call): Said {
  if (!isObject(reply)) throw wrong(`must be a string or a message, not ${reply === null ? "null" : typeof reply}`)
  // Clients' messages have members for all that there might be.
  const filled = Object.fromEntries(Object.entries(reply).filter(([, value]) => value !== null && !isEmpty(value)))
  checkArguments("The expert's reply", filled, keys)
  const { role = "assistant", tool_calls: given, ...rest } = filled
  if (role !== "assistant") throw wrong(`has the role ${JSON.stringify(role)}; leave it out`)
  const calls = Array.isArray(given) ? given.map(asCall) : given
  const said = refusing(() => readMessage({ role, ...rest, tool_calls: calls }, "reply")) as Said
  for (const one of said.toolCalls) checkCall(one, call)
  return said
}

function isEmpty(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0
}

function asCall(call: unknown, index: number): unknown {
  if (!isObject(call)) return call
  if (!isObject(call.function)) return { id: `call_${index}`, ...call }
  const { arguments: given, ...called } = call.function
  const text = isObject(given) ? stringify(given) : given
  return { id: `call_${index}`, ...call, function: { ...called, arguments: text } }
}

function refusing<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw error instanceof ApiError ? wrong(`is no assistant's message: ${error.message.replace(/\.$/, "")}`) : error
  }
}

function checkCall({ name, arguments: given }: ToolCall, { tools, toolChoice }: Call): void {
  const offered = toolChoice === "none" ? [] : tools
  const tool = offered.find((one) => one.name === name)
  if (!tool) {
    const known = offered.length > 0 ? `it offers ${offered.map((one) => one.name).join(", ")}` : "it offers none"
    throw wrong(`calls the tool ${JSON.stringify(name)}, which the agent's request does not offer: ${known}`)
  }
  const problem = schemaProblem(JSON.parse(given), tool.parameters, "arguments")
  if (problem !== undefined) throw wrong(`calls ${name} with ${given.slice(0, 200)}, but ${problem}`)
}

/** The reply as the model's chat template writes it, checked by reading it as the endpoint will. */
async function written(codec: ReplyCodec, { messages, tools, toolChoice }: Call, said: Said): Promise<Int32Array> {
  const offered = toolChoice === "none" ? [] : tools
  const chat = [...messages, said].map(forTemplate)
  const writer = await ChatWriter.of(codec, chat, toolVariables(offered))
  const asked = await writer.write({ end: messages.length })
  const whole = await writer.write({ addGenerationPrompt: false })
  const format = toolFormat(codec.toolTemplate ?? codec.chatTemplate)
  const opening = format.opening(asked)
  const found = splitReply(asked, whole, opening, said.reasoning ?? "")
  // The prompt is the request's: what the template would have begun otherwise for this reply cannot be said behind it.
  if (found?.prompt !== asked)
    throw wrong("is not written by the model's chat template where it asks for a reply: give it as a string")
  const { tokens } = upToEnd(codec, writer.encode, found.reply)
  const text = codec.decode(tokens, { skipSpecial: true })
  if (!isReadAs(said, format.reader({ tools: offered.length > 0, opening }), text))
    throw wrong(
      `is written by the model's chat template as ${JSON.stringify(text.slice(0, 200))}, which is read as something else: give it as a string, or take a template that writes calls of tools`,
    )
  return tokens
}

function isReadAs({ content, toolCalls }: Said, reader: ReplyReader, text: string): boolean {
  const pieces = [...reader.read(text), ...reader.end()]
  const calls = pieces.filter((piece) => piece.kind === "call")
  const spoken = pieces.map((piece) => (piece.kind === "content" ? piece.text : "")).join("")
  return (
    spoken.trim() === content.trim() &&
    calls.length === toolCalls.length &&
    calls.every((call, index) => isSame(call, toolCalls[index]!))
  )
}

function isSame(one: Pick<ToolCall, "name" | "arguments">, other: ToolCall): boolean {
  return one.name === other.name && canonicalJson(one.arguments) === canonicalJson(other.arguments)
}

function wrong(what: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", `The expert's reply ${what}.`)
}
