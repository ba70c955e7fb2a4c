import { mostTopTokens } from "../../engine/check-request.ts"
import { isObject } from "../../options/read.ts"
import { ApiError, badField } from "../api-error.ts"
import type { Call, CallMessage, Format, Tool, ToolCall, ToolChoice } from "../call.ts"
import { FieldReader } from "../fields.ts"

// POST /v1/chat/completions: https://platform.openai.com/docs/api-reference/chat/create

export interface ChatCall extends Call {
  /** Whether the last chunk of a stream tells how many tokens there were. */
  readonly usageInStream: boolean
  /** vLLM's `return_token_ids`: the ids of prompt and replies come with the answer. */
  readonly tokenIds: boolean
}

export function readChat(body: unknown): ChatCall {
  const read = new FieldReader(body)
  const model = read.required("model")
  const messages = readMessages(read.list("messages"))
  const tools = readTools(read.list("tools"))
  const stream = read.boolean("stream") ?? false
  const streamOptions = read.any("stream_options")
  const logProbs = read.boolean("logprobs") ?? false
  const topLogProbs = read.whole("top_logprobs", 0, mostTopTokens)
  if (topLogProbs !== undefined && !logProbs) throw badField("top_logprobs", "needs logprobs: true")
  const [newer, older] = [read.whole("max_completion_tokens", 1, 2 ** 31), read.whole("max_tokens", 1, 2 ** 31)]
  const call: ChatCall = {
    model,
    messages,
    tools,
    toolChoice: readToolChoice(read.any("tool_choice"), tools, (choice) => choice.function),
    parallel: read.boolean("parallel_tool_calls") ?? true,
    format: readFormat(read.any("response_format"), "response_format", (format) => format.json_schema),
    maxTokens: newer ?? older,
    stop: readStop(read.any("stop")),
    count: read.whole("n", 1, 128) ?? 1,
    seed: read.whole("seed", -(2 ** 53), 2 ** 53),
    temperature: read.number("temperature", 0, 2),
    logProbs,
    topLogProbs: topLogProbs ?? 0,
    stream,
    usageInStream: readStreamOptions(streamOptions, stream),
    tokenIds: read.boolean("return_token_ids") ?? false,
  }
  read.neutral(neutral)
  read.neutral({
    modalities: [["text"]],
    functions: [[]],
    function_call: [],
    prediction: [],
    audio: [],
    web_search_options: [],
    reasoning_effort: [],
  })
  read.ignore(...unheeded)
  read.done()
  return call
}

/** What would change what is sampled, and what it is when it does not. */
export const neutral: Readonly<Record<string, readonly unknown[]>> = {
  top_p: [1],
  top_k: [-1, 0],
  min_p: [0],
  frequency_penalty: [0],
  presence_penalty: [0],
  repetition_penalty: [1],
  logit_bias: [{}],
}

/** What says nothing about the reply. */
export const unheeded: readonly string[] = [
  ...["user", "metadata", "store", "service_tier", "prompt_cache_key", "prompt_cache_retention", "safety_identifier"],
]

export function readStreamOptions(value: unknown, stream: boolean): boolean {
  if (value === undefined) return false
  if (!stream) throw badField("stream_options", "needs stream: true")
  const read = new FieldReader(value, "stream_options")
  const usage = read.boolean("include_usage") ?? false
  read.ignore("include_obfuscation")
  read.done()
  return usage
}

export function readStop(value: unknown): readonly string[] {
  if (value === undefined) return []
  const texts = typeof value === "string" ? [value] : value
  if (!Array.isArray(texts) || texts.length > 4 || !texts.every((text) => typeof text === "string" && text !== ""))
    throw badField("stop", "must be a text, or a list of up to 4 of them, none empty")
  return texts
}

export function readMessages(values: readonly unknown[] | undefined): readonly CallMessage[] {
  if (!values || values.length === 0) throw badField("messages", "must be a list of at least one message")
  return values.map((value, index) => readMessage(value, `messages[${index}]`))
}

/** What clients keep beside a message (annotations, what they parsed of it) is left. */
function readMessage(value: unknown, path: string): CallMessage {
  const read = new FieldReader(value, path)
  const role = read.oneOf("role", ["system", "developer", "user", "assistant", "tool"])
  const content = readContent(read.any("content"), `${path}.content`)
  switch (role) {
    case "system":
    case "developer":
    case "user":
      if (content === undefined) throw badField(`${path}.content`, "is missing")
      return { role: role === "developer" ? "system" : role, content }
    case "tool": {
      const toolCallId = read.required("tool_call_id")
      return { role, content: content ?? "", toolCallId }
    }
    case "assistant": {
      const toolCalls = (read.list("tool_calls") ?? []).map((call, at) =>
        readToolCall(call, `${path}.tool_calls[${at}]`),
      )
      const reasoning = read.string("reasoning_content") ?? read.string("reasoning")
      const refusal = read.string("refusal")
      read.neutral({ audio: [], function_call: [] })
      return { role, content: content ?? refusal ?? "", toolCalls, ...(reasoning !== undefined && { reasoning }) }
    }
    default:
      throw badField(`${path}.role`, "is missing")
  }
}

/** A text, or parts that are texts. */
export function readContent(value: unknown, path: string): string | undefined {
  if (value === undefined || typeof value === "string") return value
  if (!Array.isArray(value)) throw badField(path, "must be a text, or a list of parts")
  return value
    .map((part, index) => {
      const at = `${path}[${index}]`
      const read = new FieldReader(part, at)
      const type = read.oneOf("type", ["text", "input_text", "output_text", "refusal"])
      if (type === undefined) throw badField(`${at}.type`, "must be text: this model reads nothing else")
      return type === "refusal" ? read.required("refusal") : read.required("text")
    })
    .join("")
}

function readToolCall(value: unknown, path: string): ToolCall {
  const read = new FieldReader(value, path)
  const id = read.required("id")
  if ((read.oneOf("type", ["function"]) ?? "function") !== "function")
    throw badField(`${path}.type`, "must be function")
  const called = new FieldReader(read.any("function"), `${path}.function`)
  return { id, name: called.required("name"), arguments: called.string("arguments") ?? "{}" }
}

export function readTools(values: readonly unknown[] = []): readonly Tool[] {
  return values.map((tool, index) => readTool(tool, `tools[${index}]`))
}

function readTool(value: unknown, path: string): Tool {
  const read = new FieldReader(value, path)
  if (read.any("type") !== "function") throw badField(`${path}.type`, "must be function: no other tools are run here")
  return readFunction(read.any("function"), `${path}.function`)
}

/** A function that may be called, in the form that both endpoints share. */
export function readFunction(value: unknown, path: string): Tool {
  const read = new FieldReader(value, path)
  const name = read.required("name")
  if (!/^[\w.-]{1,128}$/.test(name)) throw badField(`${path}.name`, "must be of letters, digits, _, - and .")
  const description = read.string("description")
  const parameters = read.any("parameters") ?? { type: "object", properties: {} }
  if (!isObject(parameters)) throw badField(`${path}.parameters`, "must be a JSON schema")
  const strict = read.boolean("strict") ?? false
  read.ignore("type")
  read.done()
  return { name, parameters, strict, field: `${path}.parameters`, ...(description !== undefined && { description }) }
}

/** `named` finds the function in a choice that is an object: the two endpoints put it in different places. */
export function readToolChoice(
  value: unknown,
  tools: readonly Tool[],
  named: (choice: Readonly<Record<string, unknown>>) => unknown,
): ToolChoice {
  if (value === undefined) return "auto"
  if (value === "auto" || value === "none") return value
  if (tools.length === 0) throw badField("tool_choice", "asks for a tool, but there are no tools")
  if (value === "required") return value
  const chosen = isObject(value) && value.type === "function" ? named(value) : undefined
  const name = isObject(chosen) ? chosen.name : undefined
  if (typeof name !== "string") throw badField("tool_choice", "must be auto, none, required, or name a function")
  if (!tools.some((tool) => tool.name === name))
    throw badField("tool_choice", `names ${JSON.stringify(name)}, which is none of the tools`)
  return { name }
}

/** `of` finds the schema's part in the format: the two endpoints put it in different places. */
export function readFormat(
  value: unknown,
  path: string,
  of: (format: Readonly<Record<string, unknown>>) => unknown,
): Format {
  if (value === undefined) return { kind: "text" }
  if (!isObject(value)) throw badField(path, "must be an object")
  switch (value.type) {
    case "text":
      return { kind: "text" }
    case "json_object":
      return { kind: "json", field: path }
    case "json_schema": {
      const part = of(value)
      if (!isObject(part) || !("schema" in part)) throw badField(path, "has no schema")
      return {
        kind: "schema",
        schema: part.schema,
        field: part === value ? `${path}.schema` : `${path}.json_schema.schema`,
      }
    }
    default:
      throw badField(`${path}.type`, "must be text, json_object or json_schema")
  }
}

export function noSuchModel(model: string, known: readonly string[]): ApiError {
  return new ApiError(404, `There is no model ${JSON.stringify(model.slice(0, 100))}; there is ${known.join(", ")}.`, {
    param: "model",
    code: "model_not_found",
  })
}
