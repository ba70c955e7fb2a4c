import type { Agent } from "gigpo"
import type { SqlTask } from "gigpo/environments/sql"
import OpenAI from "openai"
import { functionsOf, grade, instructions, maxSteps, toolsOf } from "./shop.ts"

/** The same agent on OpenAI's client: a loop of one's own. */
export const agent: Agent<SqlTask> = async (task, context) => {
  const { openai, model, signal } = context
  const client = new OpenAI({ ...openai, maxRetries: 0 })
  const tools = toolsOf(task, context)
  const offered = functionsOf(tools)
  const messages: OpenAI.ChatCompletionMessageParam[] = [
    { role: "system", content: instructions },
    { role: "user", content: task.question },
  ]
  for (let step = 0; step < maxSteps; step++) {
    const { choices } = await client.chat.completions.create({ model, messages, tools: offered }, { signal })
    const { message } = choices[0]!
    messages.push(message)
    if (!message.tool_calls?.length) return await grade(task, message.content ?? "", signal)
    for (const call of message.tool_calls) {
      if (call.type !== "function") continue
      const tool = tools.find(({ name }) => name === call.function.name)
      const content = (await tool?.run(JSON.parse(call.function.arguments))) ?? "there is no such tool"
      messages.push({ role: "tool", tool_call_id: call.id, content })
    }
  }
  return await grade(task, "", signal)
}
