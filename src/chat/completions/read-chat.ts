import { mostTopTokens } from "../../engine/check-request.ts"
import { RawJson } from "../../json/raw.ts"
import { memberTextsInPieces, stringify } from "../../json/text.ts"
import { isObject } from "../../options/read.ts"
import { reservedName } from "../../tokenizer/chat-options.ts"
import type { Pieces } from "../../util/pace.ts"
import { ApiError, badField } from "../api-error.ts"
import type { CallMessage } from "../call.ts"
import { FieldReader, isText } from "../fields.ts"
import { OpenCalls } from "../open-calls.ts"
import { readToolChoice, readTools } from "../tools/read-tools.ts"
import type { ChoicesCall } from "./choices.ts"
import { readFormat } from "./read-format.ts"
import { readMessages } from "./read-messages.ts"
import { readThinking } from "./read-thinking.ts"

// POST /v1/chat/completions: https://platform.openai.com/docs/api-reference/chat/create

export function* readChat(body: unknown): Pieces<ChoicesCall> {
  const read = new FieldReader(body)
  const model = read.required("model")
  const messages = yield* readMessages(read.list("messages"))
  checkAnswered(messages)
  const tools = yield* readTools(read.list("tools"))
  const stream = read.boolean("stream") ?? false
  const streamOptions = read.any("stream_options")
  const logProbs = read.boolean("logprobs") ?? false
  const topLogProbs = read.whole("top_logprobs", 0, mostTopTokens)
  if (topLogProbs && !logProbs) throw badField("top_logprobs", "needs logprobs: true")
  const usage = readUsage(read.any("usage"))
  const call: ChoicesCall = {
    model,
    messages,
    variables: yield* readVariables(read.any("chat_template_kwargs")),
    thinking: readThinking(read),
    tools,
    toolChoice: readToolChoice(read.any("tool_choice"), tools, "function"),
    parallel: read.boolean("parallel_tool_calls") ?? true,
    format: yield* readFormat(read.any("response_format"), "response_format", "json_schema"),
    maxTokens: readLength(read),
    stop: readStop(read.any("stop")),
    count: read.whole("n", 1, 128) ?? 1,
    seed: read.whole("seed", -(2 ** 53), 2 ** 53),
    temperature: read.number("temperature", 0, 2),
    logProbs,
    topLogProbs: topLogProbs ?? 0,
    stream,
    usageInStream: readStreamOptions(streamOptions, stream) || usage,
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
    verbosity: ["medium"],
  })
  read.ignore(...unheeded)
  read.done()
  return call
}

/** Maximum number of variables of the chat template; templates read a few. */
const mostVariables = 256

/** Variables of the chat template, under vLLM's name. */
export function* readVariables(value: unknown = {}): Pieces<Readonly<Record<string, unknown>>> {
  const field = "chat_template_kwargs"
  if (!isObject(value)) throw badField(field, "must be an object")
  const wrong = reservedName(value)
  if (wrong !== undefined) throw badField(field, wrong)
  return yield* asWritten(value, field)
}

/** Variables with numbers, objects and lists as raw JSON. */
function* asWritten(
  variables: Readonly<Record<string, unknown>>,
  field: string,
): Pieces<Readonly<Record<string, unknown>>> {
  const texts = yield* memberTextsInPieces(stringify(variables))
  if (texts.size > mostVariables) throw badField(field, `has ${texts.size} variables; send at most ${mostVariables}`)
  const plain = (value: unknown) => value === null || ["string", "boolean"].includes(typeof value)
  return Object.fromEntries(
    Object.entries(variables).map(([name, value]) => [name, plain(value) ? value : RawJson.known(texts.get(name)!)]),
  )
}

/** Unsupported sampling options, with the values that have no effect. */
export const neutral: Readonly<Record<string, readonly unknown[]>> = {
  top_p: [1],
  top_k: [-1, 0],
  min_p: [0],
  frequency_penalty: [0],
  presence_penalty: [0],
  repetition_penalty: [1],
  logit_bias: [{}],
  min_tokens: [0],
}

/** Fields without effect on the completion. */
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

/** OpenRouter's option for token counts, which a response has in any case and the last chunk of a stream on request. */
function readUsage(value: unknown): boolean {
  if (value === undefined) return false
  const read = new FieldReader(value, "usage")
  const include = read.boolean("include") ?? false
  read.done()
  return include
}

export function readLength(read: FieldReader): number | undefined {
  const [newer, older] = [read.whole("max_completion_tokens", 1, 2 ** 31), read.whole("max_tokens", 1, 2 ** 31)]
  if (newer !== undefined && older !== undefined && newer !== older)
    throw badField("max_tokens", "differs from max_completion_tokens; give one of them")
  return newer ?? older
}

export function readStop(value: unknown, field = "stop"): readonly string[] {
  if (value === undefined) return []
  const texts = typeof value === "string" ? [value] : value
  if (!Array.isArray(texts) || texts.length > 4 || !texts.every((text) => typeof text === "string" && text !== ""))
    throw badField(field, "must be a string or a list of up to 4 strings, none empty")
  for (const text of texts) isText(text, field)
  return texts
}

/** Checks that the results of tool calls directly follow the assistant's message. */
function checkAnswered(messages: readonly CallMessage[]): void {
  let open = new OpenCalls()
  for (const [index, message] of messages.entries()) {
    if (message.role === "tool") open.answer(message.toolCallId, `messages[${index}].tool_call_id`)
    else {
      open.done()
      open = new OpenCalls()
      if (message.role === "assistant")
        for (const [at, { id }] of message.toolCalls.entries()) open.call(id, `messages[${index}].tool_calls[${at}].id`)
    }
  }
  open.done()
}

export function noSuchModel(model: string, known: readonly string[]): ApiError {
  return new ApiError(
    404,
    `There is no model ${JSON.stringify(model.slice(0, 100))}; available: ${known.join(", ")}.`,
    {
      param: "model",
      code: "model_not_found",
    },
  )
}
