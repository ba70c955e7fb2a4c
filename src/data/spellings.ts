import { badField } from "../chat/api-error.ts"
import { parseJson, stringify } from "../json/text.ts"
import { isObject } from "../options/read.ts"

// Data sets have several message formats. They are converted to that of OpenAI. In the format of Hugging Face, calls have no ids, arguments are
// objects and tool messages name no call; older data sets have `function_call`.

type Values = Readonly<Record<string, unknown>>

/** Converts messages to the format of OpenAI. Other mistakes are left to the checks of that format. */
export function commonSpelling(messages: readonly unknown[], path: string): readonly unknown[] {
  const open: { readonly id: string; readonly name: unknown }[] = [] // calls that no tool has answered
  let made = 0
  const callOf = (value: unknown): unknown => {
    if (!isObject(value)) return value
    const { id, type = "function", function: called = value } = withoutNulls(value)
    if (!isObject(called)) return value
    const own = id === undefined || id === "" ? `call_${made++}` : id
    open.push({ id: String(own), name: called.name })
    return { id: own, type, function: { name: called.name, arguments: written(called.arguments) } }
  }
  /** Id of the call that a message answers: the named one, by id or tool name, or else the first without an answer. */
  const answered = ({ tool_call_id: given, name }: Values, at: string): string => {
    const id = given === "" ? undefined : given
    const known = open.findIndex((call) => (typeof id === "string" ? call.id === id : call.name === name))
    if (typeof id !== "string" && open.length === 0)
      throw badField(
        at,
        "answers a tool call, but there is none before it: add tool_calls to the message of the assistant",
      )
    const [call] = known < 0 && typeof id === "string" ? [] : open.splice(Math.max(known, 0), 1)
    return call?.id ?? String(id)
  }
  return messages.map((value, index) => {
    if (!isObject(value)) return value
    const message = withoutNulls(value)
    const { role, tool_calls: calls, function_call: old, thinking, ...rest } = message
    if (role === "tool" || role === "function")
      return { ...rest, role: "tool", tool_call_id: answered(message, `${path}[${index}]`) }
    if (role !== "assistant") return message
    const all = calls ?? (old === undefined ? undefined : [old])
    return {
      ...(thinking !== undefined && { reasoning: thinking }),
      ...rest,
      role,
      ...(all !== undefined && { tool_calls: Array.isArray(all) ? all.map(callOf) : all }),
    }
  })
}

/** Reads tools from a list or its JSON. Each is a function, with or without the wrapper { type: "function" }. */
export function commonTools(tools: unknown): readonly unknown[] | undefined {
  const value = typeof tools === "string" ? parsed(tools) : tools
  if (value === undefined || value === null) return undefined
  if (!Array.isArray(value)) throw badField("tools", "must be a list, or the JSON of one")
  return value.map((tool) => (isObject(tool) && !("function" in tool) ? { type: "function", function: tool } : tool))
}

function parsed(json: string): unknown {
  try {
    return json.trim() === "" ? undefined : parseJson(json)
  } catch {
    return json // rejected later, since it is not a list
  }
}

function written(given: unknown): unknown {
  return typeof given === "string" ? given : given === null ? undefined : stringify(given)
}

/** Removes null values: tabular data sets have all keys in all rows. */
function withoutNulls(value: Values): Values {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== null && one !== undefined))
}
