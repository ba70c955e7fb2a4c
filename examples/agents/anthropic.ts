import Anthropic from "@anthropic-ai/sdk"
import type { Agent } from "gigpo"
import type { SqlTask } from "gigpo/environments/sql"
import { grade, instructions, maxSteps, toolsOf } from "./shop.ts"

/** The same agent on Anthropic's client, whose messages are streamed. */
export const agent: Agent<SqlTask> = async (task, context) => {
  const { anthropic, model, signal } = context
  const client = new Anthropic({ ...anthropic, maxRetries: 0 })
  const tools = toolsOf(task, context)
  const offered = tools.map(({ name, description, parameters }) => ({ name, description, input_schema: parameters }))
  const asked = { model, max_tokens: 1024, system: instructions, tools: offered }
  const messages: Anthropic.MessageParam[] = [{ role: "user", content: task.question }]
  for (let step = 0; step < maxSteps; step++) {
    const { content } = await client.messages.stream({ ...asked, messages }, { signal }).finalMessage()
    const results: Anthropic.ToolResultBlockParam[] = []
    for (const block of content) {
      if (block.type !== "tool_use") continue
      const tool = tools.find(({ name }) => name === block.name)
      const result = (await tool?.run(block.input)) ?? "there is no such tool"
      results.push({ type: "tool_result", tool_use_id: block.id, content: result })
    }
    if (results.length === 0) {
      const text = content.map((block) => (block.type === "text" ? block.text : "")).join("")
      return await grade(task, text, signal)
    }
    messages.push({ role: "assistant", content }, { role: "user", content: results })
  }
  return await grade(task, "", signal)
}
