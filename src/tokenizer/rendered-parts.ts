import { randomInt } from "node:crypto"
import { RawJson } from "../json/raw.ts"
import { isObject } from "../options/read.ts"
import { NotRendered } from "./not-rendered.ts"
import type { ChatMessage } from "./tokenizer.ts"

type Values = Readonly<Record<string, unknown>>

/** Chat as input of a template. */
export interface TemplateChat {
  readonly messages: readonly ChatMessage[]
  readonly variables: Values
}

/** Part of a chat that must appear in the prompt. */
interface Part {
  readonly field: string
  /** Description of the part for messages. */
  readonly kind: string
  /** Text of the part if the template renders it unchanged; undefined if there are several forms. */
  readonly text?: string
  /** Texts that replace the part in the probe. */
  readonly probes: readonly string[]
}

/** Random digits, which templates do not change and chats do not contain. */
const stem = String(randomInt(10 ** 13, 10 ** 14))
const digitsBehind = 8
const probeTexts = new RegExp(`${stem}\\d{${digitsBehind}}`, "g")

/**
 * Parts of a chat, and a probe: the same chat with a unique text in each part. A template that renders a part also renders its text in the
 * probe.
 *
 * @param thinks - whether the template handles reasoning; then it may omit reasoning on purpose
 */
export function partsOf(
  { messages, variables }: TemplateChat,
  thinks: boolean,
): { parts: Part[]; probe: TemplateChat } {
  const parts: Part[] = []
  let made = 0
  const add = (field: string, kind: string, count: number, text?: string): string[] => {
    const probes = Array.from({ length: count }, () => `${stem}${String(made++).padStart(digitsBehind, "0")}`)
    parts.push({ field, kind, probes, ...(text !== undefined && { text }) })
    return probes
  }

  const called = new Map<unknown, unknown>()
  const message = (one: ChatMessage, index: number): ChatMessage => {
    const at = `messages[${index}]`
    const { role, content, reasoning_content: reasoning, name, tool_calls: calls = [] } = one
    const changed: Record<string, unknown> = {}
    if (typeof content === "string" && content.trim() !== "") {
      if (role === "assistant") {
        // Templates omit reasoning within a completion on purpose.
        const [after] = add(`${at}.content`, contentKind(role), 1, content.split("</think>").at(-1)!.trim())
        changed.content = `${content}${after}`
      } else {
        const [before, after] = add(`${at}.content`, contentKind(role), 2, content.trim())
        changed.content = `${before}${content}${after}`
      }
    }
    if (typeof reasoning === "string" && reasoning.trim() !== "" && !thinks)
      changed.reasoning_content = reasoning + add(`${at}.reasoning_content`, "reasoning", 1, reasoning.trim())[0]
    // A template may omit the name of a tool message that equals the name in its call.
    if (typeof name === "string" && name !== "" && !(role === "tool" && called.get(one.tool_call_id) === name))
      changed.name = name + add(`${at}.name`, "names of messages", 1, name)[0]
    if (calls.length > 0)
      changed.tool_calls = calls.map((call, place) => probeOfCall(call as Values, `${at}.tool_calls[${place}]`))
    return { ...one, ...changed }
  }

  const probeOfCall = (call: Values, at: string): object => {
    const given = isObject(call.function) ? call.function : {}
    called.set(call.id, given.name)
    const name = `${given.name}${add(at, "calls of tools", 1, String(given.name))[0]}`
    if (isEmpty(given.arguments)) return { ...call, function: { ...given, name } }
    const [key, value] = add(`${at}.function.arguments`, "the arguments of calls", 2)
    return { ...call, function: { ...given, name, arguments: { [key!]: value } } }
  }

  const tool = (part: unknown, index: number): unknown => {
    const value = read(part)
    const given = isObject(value) && isObject(value.function) ? value.function : undefined
    if (!given) return value
    const at = `tools[${index}].function`
    const changed: Record<string, unknown> = { name: `${given.name}${add("tools", "tools", 1, String(given.name))[0]}` }
    if (typeof given.description === "string" && given.description.trim() !== "")
      changed.description =
        given.description + add(`${at}.description`, "descriptions of tools", 1, given.description.trim())[0]
    const parameters = read(given.parameters)
    if (isObject(parameters) && isObject(parameters.properties)) {
      const keys = Object.keys(parameters.properties)
      const renamed = keys.map((key) => key + add(`${at}.parameters`, "the parameters of tools", 1, key)[0])
      const newNames = new Map<unknown, string>(keys.map((key, place) => [key, renamed[place]!]))
      const required = Array.isArray(parameters.required) ? parameters.required : []
      changed.parameters = {
        ...parameters,
        properties: Object.fromEntries(
          Object.values(parameters.properties).map((one, place) => [renamed[place]!, one]),
        ),
        ...(parameters.required !== undefined && {
          required: required.map((key) => newNames.get(key) ?? key),
        }),
      }
    }
    return { ...(value as object), function: { ...given, ...changed } }
  }

  const probe = {
    messages: messages.map(message),
    variables: Array.isArray(variables.tools) ? { ...variables, tools: variables.tools.map(tool) } : variables,
  }
  return { parts, probe }
}

/** Whether all parts appear unchanged in the rendered text: the cheap first half of the check. */
export function plainlyRendered(parts: readonly Part[], text: string): boolean {
  let from = 0
  return parts.every(({ text: part }) => {
    if (part === undefined) return true
    for (const form of [part, JSON.stringify(part).slice(1, -1)]) {
      const later = text.indexOf(form, from)
      const at = later >= 0 ? later : text.indexOf(form)
      if (at < 0) continue
      from = at
      return true
    }
    return false
  })
}

/** Checks the rendered probe. Throws NotRendered for the first part whose text is missing. */
export function checkProbe(parts: readonly Part[], text: string): void {
  const written = new Set(text.match(probeTexts))
  for (const { field, kind, probes } of parts)
    if (!probes.every((probe) => written.has(probe))) throw new NotRendered(field, kind)
}

function contentKind(role: string): string {
  if (role === "tool") return "results of tools"
  return role === "assistant" ? "this reply" : `this message of the role ${role}`
}

/** Parsed value of RawJson. */
function read(value: unknown): unknown {
  return value instanceof RawJson ? value.parse() : value
}

function isEmpty(value: unknown): boolean {
  const given = read(value)
  return given === undefined || given === null || given === "" || (isObject(given) && Object.keys(given).length === 0)
}
