import { visible } from "../../../util/visible.ts"
import type { PromptMessage } from "../../data/messages.ts"
import type { RecordedStep } from "../../data/recorded.ts"
import { type ToolCall, toolCalls } from "../../data/tool-calls.ts"
import { element } from "../element.ts"
import { edgedText, longText } from "../long-text.ts"
import { labelled } from "./labelled.ts"
import { observation } from "./observation.ts"

/** Number of characters of a system message, which is seldom read, that are shown at first. */
const longestSystem = 300

/** Messages of a conversation, each with its role. */
export function messages(promptMessages: readonly PromptMessage[]): HTMLElement[] {
  return promptMessages.map(({ role, text }) => {
    const [, result] = /^\s*<tool_response>([\s\S]*?)(?:<\/tool_response>)?\s*$/.exec(text) ?? []
    const title = result === undefined ? roleTitle(role) : "Tool"
    const content = role === "system" ? longText(text, longestSystem) : observation((result ?? text).trim())
    const section = labelled(title, content)
    section.classList.add("message")
    return section
  })
}

function roleTitle(role: string): string {
  return role === "model" ? "Assistant" : visible(`${role[0]!.toUpperCase()}${role.slice(1)}`)
}

/** Action of a step; tool calls with their arguments as a table. */
export function action({ action: text, valid }: Pick<RecordedStep, "action" | "valid">): HTMLElement {
  const calls = toolCalls(text)
  if (!calls) return element("code", { class: `action${valid ? "" : " unreadable"}` }, edgedText(text))
  return element("div", { class: `calls${valid ? "" : " unreadable"}` }, ...calls.map(callTable))
}

function callTable({ name, arguments: given }: ToolCall): HTMLElement {
  if (given.length === 0) return element("code", { class: "action" }, visible(name))
  const rows = given.map((argument) =>
    element(
      "tr",
      {},
      argument.name !== undefined && element("th", { scope: "row" }, visible(argument.name)),
      element("td", { colspan: argument.name === undefined ? 2 : undefined }, longText(argument.value, 600)),
    ),
  )
  return element(
    "table",
    { class: "call" },
    element("caption", {}, element("code", {}, visible(name))),
    element("tbody", {}, ...rows),
  )
}
