import type { Pieces } from "../../util/pace.ts"
import { badField } from "../api-error.ts"
import type { Call, Format, ToolChoice } from "../call.ts"
import { neutral, readStop } from "../completions/read-chat.ts"
import { readFormat } from "../completions/read-format.ts"
import { FieldReader } from "../fields.ts"
import type { Thinking } from "../thinking.ts"
import { checkNamed, readInputTools } from "../tools/read-tools.ts"
import { readTurns } from "./read-turns.ts"

// POST /v1/messages and /v1/messages/count_tokens: https://docs.anthropic.com/en/api/messages

export function* readRequest(body: unknown): Pieces<Call> {
  const read = new FieldReader(body)
  const all = yield* readInputTools(read.list("tools"))
  const tools = all.filter(({ deferred }) => !deferred).map(({ deferred: _, ...tool }) => tool)
  const choice = readChoice(read.any("tool_choice"))
  const call: Call = {
    model: read.required("model"),
    messages: yield* readTurns(read.any("system"), read.list("messages"), all),
    tools,
    ...choice,
    ...(yield* readOutput(read)),
    maxTokens: read.whole("max_tokens", 1, 2 ** 31),
    stop: readStop(read.any("stop_sequences"), "stop_sequences"),
    temperature: read.number("temperature", 0, 2),
    stream: read.boolean("stream") ?? false,
    ...{ count: 1, seed: undefined, logProbs: false, topLogProbs: 0 },
  }
  checkNamed(choice.toolChoice, tools)
  read.neutral(neutral)
  read.neutral({ mcp_servers: [[]], container: [], context_management: keepsAll })
  read.ignore("metadata", "service_tier", "inference_geo", "cache_control")
  read.done()
  return call
}

/** Context management without effect on the messages. */
const keepsAll: readonly unknown[] = [{ edits: [] }, { edits: [{ type: "clear_thinking_20251015", keep: "all" }] }]

function readChoice(value: unknown): { readonly toolChoice: ToolChoice; readonly parallel: boolean } {
  const read = new FieldReader(value ?? {}, "tool_choice")
  const type = read.oneOf("type", ["auto", "any", "tool", "none"])
  if (value !== undefined && type === undefined) throw badField("tool_choice.type", "must be auto, any, tool or none")
  const name = type === "tool" ? read.required("name") : undefined
  const parallel = !(read.boolean("disable_parallel_tool_use") ?? false)
  read.done()
  if (name !== undefined) return { toolChoice: { name }, parallel }
  return { toolChoice: type === "any" ? "required" : type === "none" ? "none" : "auto", parallel }
}

/** Thinking and the format of the answer, in `thinking`, `output_config` and the older `output_format`. */
function* readOutput(read: FieldReader): Pieces<{ readonly thinking: Thinking | undefined; readonly format: Format }> {
  const inner = new FieldReader(read.any("output_config") ?? {}, "output_config")
  const effort = inner.oneOf("effort", ["low", "medium", "high", "xhigh", "max"])
  const [newer, older] = [inner.any("format"), read.any("output_format")]
  inner.done()
  if (newer !== undefined && older !== undefined)
    throw badField("output_format", "is given together with output_config.format; give one of them")
  const field = newer === undefined ? "output_format" : "output_config.format"
  const format = yield* readFormat(newer ?? older, field, undefined)
  const thinks = readThinking(read.any("thinking"))
  // High is what the API does without an effort.
  const sets = effort !== undefined && effort !== "high" && thinks?.effort !== false
  return { format, thinking: sets ? { effort, field: "output_config.effort" } : thinks }
}

/** Whether to think. A budget of tokens has no counterpart in chat templates: `max_tokens` is the only limit. */
function readThinking(value: unknown): Thinking | undefined {
  if (value === undefined) return undefined
  const read = new FieldReader(value, "thinking")
  const type = read.oneOf("type", ["enabled", "disabled", "adaptive"])
  if (type === undefined) throw badField("thinking.type", "must be enabled, disabled or adaptive")
  read.whole("budget_tokens", 1, 2 ** 31)
  read.ignore("display")
  read.done()
  return type === "adaptive" ? undefined : { effort: type === "enabled", field: "thinking.type" }
}
