/** Tool call of an action, or a text in a tag such as `<search>…</search>`. */
export interface ToolCall {
  readonly name: string
  /** Values of the arguments by name; a single value without a name if the arguments are no object. */
  readonly arguments: readonly { readonly name?: string; readonly value: string }[]
}

/**
 * Tool calls of an action; undefined for other actions. Agents record calls as JSON, `[["query", "{\"sql\": \"SELECT 1\"}"]]`; environments
 * take texts in tags, of which the end may be missing.
 */
export function toolCalls(action: string): readonly ToolCall[] | undefined {
  const tagged = /^\s*<([a-z][\w-]{0,31})>((?:[^<]|<(?!\/))*)(?:<\/\1>)?\s*$/i.exec(action)
  if (tagged) return [{ name: tagged[1]!, arguments: [{ value: tagged[2]!.trim() }] }]
  const calls = action.startsWith("[[") ? parsed(action) : undefined
  if (!Array.isArray(calls) || !calls.every(isCall)) return undefined
  return calls.map(([name, given]) => ({ name, arguments: argumentsOf(given) }))
}

/** Text of an action: `query · SELECT 1`; several calls are separated by semicolons. Other actions are unchanged. */
export function actionText(action: string): string {
  const calls = toolCalls(action)
  if (!calls) return action
  return calls.map(({ name, arguments: given }) => [name, ...given.map(({ value }) => value)].join(" · ")).join("; ")
}

function isCall(call: unknown): call is readonly [string, unknown] {
  return Array.isArray(call) && call.length === 2 && typeof call[0] === "string"
}

function argumentsOf(given: unknown): ToolCall["arguments"] {
  const values = typeof given === "string" ? (parsed(given) ?? given) : given
  if (typeof values === "object" && values !== null && !Array.isArray(values))
    return Object.entries(values).map(([name, value]) => ({ name, value: textOf(value) }))
  return [{ value: textOf(values) }]
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value)
}

/** Parsed JSON; undefined for other texts. */
function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}
