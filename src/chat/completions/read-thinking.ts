import { badField } from "../api-error.ts"
import { FieldReader } from "../fields.ts"
import type { Thinking } from "../thinking.ts"

const efforts = ["none", "minimal", "low", "medium", "high", "xhigh"] as const

/**
 * Reads `reasoning_effort`, and `reasoning` as in the Responses API and at OpenRouter. Thinking is returned as the
 * model wrote it, whatever summary was asked for.
 */
export function readThinking(read: FieldReader): Thinking | undefined {
  const direct = read.oneOf("reasoning_effort", efforts)
  const value = read.any("reasoning")
  const inner = new FieldReader(value ?? {}, read.name("reasoning"))
  const nested = inner.oneOf("effort", efforts)
  const enabled = inner.boolean("enabled")
  inner.neutral({ exclude: [false], max_tokens: [] })
  inner.ignore("summary", "generate_summary")
  inner.done()
  if (direct !== undefined && nested !== undefined && direct !== nested)
    throw badField(inner.name("effort"), "differs from reasoning_effort; give one of them")
  if (direct !== undefined) return { effort: direct, field: read.name("reasoning_effort") }
  if (nested !== undefined) return { effort: nested, field: inner.name("effort") }
  return enabled === undefined ? undefined : { effort: enabled, field: inner.name("enabled") }
}
