import { mostTopTokens } from "../../engine/check-request.ts"
import { isObject } from "../../options/read.ts"
import { badField } from "../api-error.ts"
import type { Call, CallMessage, Tool, ToolCall } from "../call.ts"
import {
  neutral,
  readContent,
  readFormat,
  readFunction,
  readStreamOptions,
  readToolChoice,
  unheeded,
} from "../chat/read-chat.ts"
import { FieldReader } from "../fields.ts"

// POST /v1/responses: https://platform.openai.com/docs/api-reference/responses/create

export interface ResponsesCall extends Call {
  /** As they came: the answer repeats them. */
  readonly asked: {
    readonly instructions: string | null
    readonly tools: readonly unknown[]
    readonly toolChoice: unknown
    readonly text: unknown
    readonly metadata: unknown
  }
}

export function readResponses(body: unknown): ResponsesCall {
  const read = new FieldReader(body)
  const model = read.required("model")
  const instructions = read.string("instructions")
  const input = readInput(read.any("input"))
  const given = read.list("tools") ?? []
  const tools = given.map((tool, index) => readTool(tool, `tools[${index}]`))
  const toolChoice = read.any("tool_choice")
  const text = read.any("text")
  const include = read.list("include") ?? []
  const call: ResponsesCall = {
    model,
    messages: [...(instructions === undefined ? [] : [{ role: "system", content: instructions } as const]), ...input],
    tools,
    toolChoice: readToolChoice(toolChoice, tools, (choice) => choice),
    parallel: read.boolean("parallel_tool_calls") ?? true,
    format: readText(text),
    maxTokens: read.whole("max_output_tokens", 1, 2 ** 31),
    stop: [],
    count: 1,
    seed: undefined,
    temperature: read.number("temperature", 0, 2),
    logProbs: include.includes("message.output_text.logprobs"),
    topLogProbs: read.whole("top_logprobs", 0, mostTopTokens) ?? 0,
    stream: read.boolean("stream") ?? false,
    asked: {
      instructions: instructions ?? null,
      tools: given,
      toolChoice: toolChoice ?? "auto",
      text: text ?? { format: { type: "text" } },
      metadata: read.any("metadata") ?? {},
    },
  }
  read.neutral(neutral)
  read.neutral({
    truncation: ["disabled"],
    background: [false],
  })
  read.without({
    previous_response_id: "no conversation is kept, send its items",
    conversation: "none is kept, send its items",
    prompt: "none is kept, send the input",
  })
  readReasoning(read.any("reasoning"))
  readStreamOptions(read.any("stream_options"), call.stream)
  read.ignore(...unheeded, "include", "max_tool_calls")
  read.done()
  return call
}

/** What a model thinks is shown as it is; how much, it decides itself. */
function readReasoning(value: unknown): void {
  if (value === undefined) return
  const read = new FieldReader(value, "reasoning")
  read.neutral({ effort: [] })
  read.ignore("summary", "generate_summary")
  read.done()
}

function readText(value: unknown): Call["format"] {
  if (value === undefined) return { kind: "text" }
  const read = new FieldReader(value, "text")
  const format = readFormat(read.any("format"), "text.format", (found) => found)
  read.ignore("verbosity")
  read.done()
  return format
}

function readTool(value: unknown, path: string): Tool {
  if (!isObject(value) || value.type !== "function")
    throw badField(`${path}.type`, "must be function: no other tools are run here")
  return readFunction(value, path)
}

/** A text, or items: what the model said in one turn (thoughts, a message, calls) is one message. */
function readInput(value: unknown): readonly CallMessage[] {
  if (typeof value === "string") return [{ role: "user", content: value }]
  if (!Array.isArray(value) || value.length === 0)
    throw badField("input", "must be a text, or a list of at least one item")
  const messages: CallMessage[] = []
  let said: Writable<Assistant> | undefined
  for (const [index, item] of value.entries()) {
    const part = readItem(item, `input[${index}]`)
    if ("role" in part) {
      messages.push(part)
      said = undefined
      continue
    }
    if (!said || beginsTurn(part, said)) {
      said = { role: "assistant", content: "", toolCalls: [] }
      messages.push(said)
    }
    if (part.content !== undefined) said.content += part.content
    if (part.reasoning !== undefined) said.reasoning = (said.reasoning ?? "") + part.reasoning
    if (part.call) said.toolCalls = [...said.toolCalls, part.call]
    if (part.reference !== undefined) said.reference = part.reference
  }
  return messages
}

/** A second message begins another turn, as do thoughts behind anything, and what is known to be of another reply. */
function beginsTurn(part: Part, said: Assistant): boolean {
  if (part.reference !== undefined && said.reference !== undefined) return part.reference !== said.reference
  const first = part.content !== undefined || part.reasoning !== undefined
  return first && (said.content !== "" || said.toolCalls.length > 0)
}

type Assistant = Extract<CallMessage, { role: "assistant" }>
type Writable<T> = { -readonly [Key in keyof T]: T[Key] }

/** Of what the model said in one turn. */
interface Part {
  readonly content?: string
  readonly reasoning?: string
  readonly call?: ToolCall
  readonly reference?: string
}

function readItem(item: unknown, path: string): CallMessage | Part {
  const read = new FieldReader(item, path)
  const type = read.string("type") ?? "message"
  switch (type) {
    case "message": {
      const role = read.oneOf("role", ["system", "developer", "user", "assistant"])
      if (role === undefined) throw badField(`${path}.role`, "is missing")
      const content = readContent(read.any("content"), `${path}.content`)
      if (content === undefined) throw badField(`${path}.content`, "is missing")
      return role === "assistant" ? { content } : { role: role === "developer" ? "system" : role, content }
    }
    case "function_call": {
      const call = {
        id: read.required("call_id"),
        name: read.required("name"),
        arguments: read.string("arguments") ?? "{}",
      }
      return { call }
    }
    case "function_call_output": {
      const toolCallId = read.required("call_id")
      const content = readContent(read.any("output"), `${path}.output`)
      return { role: "tool", content: content ?? "", toolCallId }
    }
    case "reasoning": {
      const parts = [...(read.list("content") ?? []), ...(read.list("summary") ?? [])]
      return {
        reasoning: parts.map((part) => (isObject(part) && typeof part.text === "string" ? part.text : "")).join(""),
      }
    }
    case "item_reference": {
      const [, reference] = /^(?:rs|msg|fc)_([0-9a-f]{16})(?:_\d+)?$/.exec(read.required("id")) ?? []
      if (reference === undefined) throw badField(`${path}.id`, "names no item of this endpoint; send the item whole")
      return { reference }
    }
    default:
      throw badField(
        `${path}.type`,
        "must be message, function_call, function_call_output, reasoning or item_reference",
      )
  }
}
