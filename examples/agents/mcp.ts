import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js"
import { Server } from "@modelcontextprotocol/sdk/server/index.js"
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js"
import type { Agent, AgentContext } from "gigpo"
import type { SqlTask } from "gigpo/environments/sql"
import OpenAI from "openai"
import { grade, instructions, maxSteps, toolsOf } from "./shop.ts"

/** The same agent with the tools of an MCP server, on OpenAI's client. */
export const agent: Agent<SqlTask> = async (task, context) => {
  const { openai, model, signal } = context
  const client = new OpenAI({ ...openai, maxRetries: 0 })
  const mcp = await connect(task, context)
  try {
    // What the server describes is what the model reads.
    const { tools } = await mcp.listTools()
    const offered = tools.map(({ name, description = "", inputSchema: parameters }) => ({
      type: "function" as const,
      function: { name, description, parameters },
    }))
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
        const { name, arguments: given } = call.function
        messages.push({ role: "tool", tool_call_id: call.id, content: await callTool(mcp, name, JSON.parse(given)) })
      }
    }
    return await grade(task, "", signal)
  } finally {
    await mcp.close()
  }
}

/** Text that a tool returns, or the error of the server: the model may call what there is not. */
async function callTool(mcp: Client, name: string, given: Record<string, unknown>): Promise<string> {
  try {
    const { content } = await mcp.callTool({ name, arguments: given })
    return (content as { text?: string }[]).map(({ text = "" }) => text).join("\n")
  } catch (error) {
    return (error as Error).message
  }
}

/**
 * Client of a server for one episode. The shop is in this process, and so is its server; that of another program is
 * connected to by `new StdioClientTransport({ command, args })` or `new StreamableHTTPClientTransport(url)`.
 */
async function connect(task: SqlTask, context: AgentContext): Promise<Client> {
  const tools = toolsOf(task, context)
  const server = new Server({ name: "shop", version: "1.0.0" }, { capabilities: { tools: {} } })
  server.setRequestHandler(ListToolsRequestSchema, async () => ({
    tools: tools.map(({ name, description, parameters }) => ({ name, description, inputSchema: parameters })),
  }))
  server.setRequestHandler(CallToolRequestSchema, async ({ params: { name, arguments: given } }) => {
    const tool = tools.find((one) => one.name === name)
    if (!tool) throw new Error(`there is no tool ${name}`)
    return { content: [{ type: "text", text: await tool.run(given) }] }
  })
  const client = new Client({ name: "agent", version: "1.0.0" })
  const [own, other] = InMemoryTransport.createLinkedPair()
  await Promise.all([server.connect(other), client.connect(own)])
  return client
}
