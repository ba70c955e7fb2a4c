import { mostTopTokens } from "../../engine/check-request.ts"
import { isObject } from "../../options/read.ts"
import type { Pieces } from "../../util/pace.ts"
import { badField } from "../api-error.ts"
import type { Call } from "../call.ts"
import { neutral, readStreamOptions, unheeded } from "../completions/read-chat.ts"
import { readFormat } from "../completions/read-format.ts"
import { readThinking } from "../completions/read-thinking.ts"
import { FieldReader } from "../fields.ts"
import { readFlatTools, readToolChoice } from "../tools/read-tools.ts"
import { readInput } from "./read-input.ts"

// POST /v1/responses: https://platform.openai.com/docs/api-reference/responses/create

export interface ResponsesCall extends Call {
  /** Values as received, which the response repeats. */
  readonly requested: {
    readonly instructions: string | null
    readonly tools: readonly unknown[]
    readonly toolChoice: unknown
    readonly text: unknown
    readonly metadata: unknown
  }
}

export function* readResponses(body: unknown): Pieces<ResponsesCall> {
  const read = new FieldReader(body)
  const model = read.required("model")
  const instructions = read.string("instructions")
  const input = yield* readInput(read.any("input"))
  const given = read.list("tools") ?? []
  const tools = yield* readFlatTools(given)
  const toolChoice = read.any("tool_choice")
  const text = read.any("text")
  const logProbs = readInclude(read.list("include") ?? [])
  const topLogProbs = read.whole("top_logprobs", 0, mostTopTokens)
  if (topLogProbs && !logProbs) throw badField("top_logprobs", `needs include: ["${logProbsIncluded}"]`)
  const metadata = read.any("metadata") ?? {}
  if (!isObject(metadata)) throw badField("metadata", "must be an object")
  const call: ResponsesCall = {
    model,
    messages: [...(instructions ? [{ role: "system", content: instructions } as const] : []), ...input],
    thinking: readThinking(read),
    tools,
    toolChoice: readToolChoice(toolChoice, tools, undefined),
    parallel: read.boolean("parallel_tool_calls") ?? true,
    format: yield* readText(text),
    maxTokens: read.whole("max_output_tokens", 1, 2 ** 31),
    stop: [],
    count: 1,
    seed: undefined,
    temperature: read.number("temperature", 0, 2),
    logProbs,
    topLogProbs: topLogProbs ?? 0,
    stream: read.boolean("stream") ?? false,
    requested: {
      instructions: instructions ?? null,
      tools: given,
      toolChoice: toolChoice ?? "auto",
      text: text ?? { format: { type: "text" } },
      metadata,
    },
  }
  read.neutral(neutral)
  read.neutral({
    truncation: ["disabled"],
    background: [false],
  })
  read.without({
    previous_response_id: "no state is kept; send the items of the conversation",
    conversation: "no state is kept; send the items of the conversation",
    prompt: "no stored prompts; send the input",
  })
  readStreamOptions(read.any("stream_options"), call.stream)
  read.ignore(...unheeded, "max_tool_calls")
  read.done()
  return call
}

const logProbsIncluded = "message.output_text.logprobs"

/** Values of `include`. Those for provider-run tools and encryption have no effect. */
const included: readonly string[] = [
  ...[logProbsIncluded, "reasoning.encrypted_content", "message.input_image.image_url", "file_search_call.results"],
  ...["web_search_call.results", "web_search_call.action.sources", "code_interpreter_call.outputs"],
  ...["computer_call_output.output.image_url"],
]

/** Whether log-probabilities are requested. */
function readInclude(values: readonly unknown[]): boolean {
  const strange = values.findIndex((value) => !included.includes(value as string))
  if (strange >= 0) throw badField(`include[${strange}]`, `must be one of ${included.join(", ")}`)
  return values.includes(logProbsIncluded)
}

function* readText(value: unknown): Pieces<Call["format"]> {
  if (value === undefined) return { kind: "text" }
  const read = new FieldReader(value, "text")
  const format = yield* readFormat(read.any("format"), "text.format", undefined)
  read.neutral({ verbosity: ["medium"] })
  read.done()
  return format
}
