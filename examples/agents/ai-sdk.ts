import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { generateText, jsonSchema, stepCountIs, tool } from "ai"
import type { Agent } from "gigpo"
import type { SqlTask } from "gigpo/environments/sql"
import { grade, instructions, maxSteps, toolsOf } from "./shop.ts"

/** An agent on the AI SDK. */
export const agent: Agent<SqlTask> = async (task, context) => {
  const tools = toolsOf(task, context).map(({ name, description, parameters, run }) => [
    name,
    tool({ description, inputSchema: jsonSchema(parameters), execute: run }),
  ])
  const { text } = await generateText({
    model: createOpenAICompatible({ name: "policy", ...context.openai }).chatModel(context.model),
    system: instructions,
    prompt: task.question,
    tools: Object.fromEntries(tools),
    stopWhen: stepCountIs(maxSteps),
    abortSignal: context.signal,
    maxRetries: 0,
  })
  return await grade(task, text, context.signal)
}
