import { load } from "../clients/load.ts"
import type { speaking } from "./speaking.ts"

// The clients that agents are written with, as one: what each makes of a prompt.

export type Endpoint = Pick<Awaited<ReturnType<typeof speaking>>, "fetch" | "baseURL" | "apiKey">

export interface Called {
  readonly name: string
  readonly arguments: unknown
}

export interface Client {
  text(prompt: string, signal?: AbortSignal): Promise<string>
  /** The parts of a streamed reply, as they come. */
  stream(prompt: string, signal?: AbortSignal): AsyncIterable<string>
  /** An object of `answer`. */
  object(prompt: string): Promise<unknown>
  /** The calls of one reply, which must have some. */
  calls(prompt: string): Promise<readonly Called[]>
}

/** Makes the schemas of `object` and of the tools, with zod: all clients take them. */
export async function schemas() {
  const { z } = await load("zod")
  return {
    answer: z.object({ verdict: z.enum(["yes", "no"]), parts: z.array(z.number().int().min(0).max(9)).max(3) }),
    tool: { name: "look", description: "Looks.", parameters: z.object({ where: z.enum(["left", "right"]) }) },
  }
}

const messages = (prompt: string) => [{ role: "user", content: prompt }]
const model = "policy"

async function openaiChat({ fetch, baseURL, apiKey }: Endpoint): Promise<Client> {
  const [{ default: OpenAI }, { zodResponseFormat, zodFunction }] = await Promise.all(
    ["openai", "openai/helpers/zod"].map(load),
  )
  const { answer, tool } = await schemas()
  const { completions } = new OpenAI({ baseURL, apiKey, fetch, maxRetries: 0 }).chat
  return {
    text: async (prompt, signal) =>
      (await completions.create({ model, messages: messages(prompt) }, { signal })).choices[0].message.content,
    async *stream(prompt, signal) {
      const stream = await completions.create({ model, messages: messages(prompt), stream: true }, { signal })
      for await (const { choices } of stream) yield choices[0]?.delta.content ?? ""
    },
    async object(prompt) {
      const format = zodResponseFormat(answer, "answer")
      const said = await completions.parse({ model, messages: messages(prompt), response_format: format })
      return said.choices[0].message.parsed
    },
    async calls(prompt) {
      const asked = { model, messages: messages(prompt), tools: [zodFunction(tool)], tool_choice: "required" }
      const said = await completions.parse(asked)
      return said.choices[0].message.tool_calls.map(
        (one: { function: { name: string; parsed_arguments: unknown } }) => ({
          name: one.function.name,
          arguments: one.function.parsed_arguments,
        }),
      )
    },
  }
}

async function openaiResponses({ fetch, baseURL, apiKey }: Endpoint): Promise<Client> {
  const [{ default: OpenAI }, { zodTextFormat, zodResponsesFunction }] = await Promise.all(
    ["openai", "openai/helpers/zod"].map(load),
  )
  const { answer, tool } = await schemas()
  const { responses } = new OpenAI({ baseURL, apiKey, fetch, maxRetries: 0 })
  return {
    text: async (input, signal) => (await responses.create({ model, input }, { signal })).output_text,
    async *stream(input, signal) {
      const stream = await responses.create({ model, input, stream: true }, { signal })
      for await (const event of stream) if (event.type === "response.output_text.delta") yield event.delta
    },
    object: async (input) =>
      (await responses.parse({ model, input, text: { format: zodTextFormat(answer, "answer") } })).output_parsed,
    async calls(input) {
      const said = await responses.create({
        model,
        input,
        tools: [zodResponsesFunction(tool)],
        tool_choice: "required",
      })
      return said.output.map((one: { name: string; arguments: string }) => ({
        name: one.name,
        arguments: JSON.parse(one.arguments),
      }))
    },
  }
}

async function aiSdk(languageModel: unknown): Promise<Client> {
  const [{ generateText, streamText, Output, tool: toolOf }, { answer, tool }] = await Promise.all([
    load("ai"),
    schemas(),
  ])
  const common = { model: languageModel, maxRetries: 0 }
  return {
    text: async (prompt, abortSignal) => (await generateText({ ...common, prompt, abortSignal })).text,
    async *stream(prompt, abortSignal) {
      let failure: unknown
      const onError = ({ error }: { error: unknown }) => {
        failure = error
      }
      yield* streamText({ ...common, prompt, abortSignal, onError }).textStream
      abortSignal?.throwIfAborted()
      if (failure) throw failure
    },
    object: async (prompt) =>
      (await generateText({ ...common, prompt, output: Output.object({ schema: answer }) })).output,
    async calls(prompt) {
      const look = toolOf({ description: tool.description, inputSchema: tool.parameters, strict: true })
      const { toolCalls } = await generateText({ ...common, prompt, tools: { look }, toolChoice: "required" })
      return toolCalls.map((one: { toolName: string; input: unknown }) => ({
        name: one.toolName,
        arguments: one.input,
      }))
    },
  }
}

async function langChain({ fetch, baseURL, apiKey }: Endpoint): Promise<Client> {
  const [{ ChatOpenAI }, { tool: toolOf }, { answer, tool }] = await Promise.all([
    load("@langchain/openai"),
    load("@langchain/core/tools"),
    schemas(),
  ])
  const chat = new ChatOpenAI({ model, apiKey, configuration: { baseURL, fetch }, maxRetries: 0 })
  return {
    text: async (prompt, signal) => (await chat.invoke(prompt, { signal })).text,
    async *stream(prompt, signal) {
      for await (const chunk of await chat.stream(prompt, { signal })) yield chunk.text
    },
    object: (prompt) => chat.withStructuredOutput(answer, { method: "jsonSchema", strict: true }).invoke(prompt),
    async calls(prompt) {
      const look = toolOf(() => "", { name: tool.name, description: tool.description, schema: tool.parameters })
      const said = await chat.bindTools([look], { tool_choice: "required", strict: true }).invoke(prompt)
      return said.tool_calls.map((one: { name: string; args: unknown }) => ({ name: one.name, arguments: one.args }))
    },
  }
}

async function agents({ fetch, baseURL, apiKey }: Endpoint, useResponses: boolean): Promise<Client> {
  const [{ Agent, Runner, tool: toolOf, OpenAIProvider, setTracingDisabled }, { default: OpenAI }, { answer, tool }] =
    await Promise.all([load("@openai/agents"), load("openai"), schemas()])
  setTracingDisabled(true)
  const openAIClient = new OpenAI({ baseURL, apiKey, fetch, maxRetries: 0 })
  const runner = new Runner({ modelProvider: new OpenAIProvider({ openAIClient, useResponses }) })
  const agent = (more: object = {}) => new Agent({ name: "a", model, ...more })
  return {
    text: async (prompt, signal) => (await runner.run(agent(), prompt, { signal })).finalOutput,
    async *stream(prompt, signal) {
      const run = await runner.run(agent(), prompt, { signal, stream: true })
      yield* run.toTextStream()
      await run.completed
      signal?.throwIfAborted()
    },
    object: async (prompt) => (await runner.run(agent({ outputType: answer }), prompt)).finalOutput,
    async calls(prompt) {
      const called: Called[] = []
      const execute = (given: unknown) => {
        called.push({ name: tool.name, arguments: given })
        return "done"
      }
      const more = { tools: [toolOf({ ...tool, execute })], toolUseBehavior: "stop_on_first_tool" }
      await runner.run(agent({ ...more, modelSettings: { toolChoice: "required" } }), prompt)
      return called
    },
  }
}

async function anthropic({ fetch, baseURL, apiKey }: Endpoint): Promise<Client> {
  const [{ default: Anthropic }, { zodOutputFormat }, { z }] = await Promise.all(
    ["@anthropic-ai/sdk", "@anthropic-ai/sdk/helpers/zod", "zod"].map(load),
  )
  const { answer, tool } = await schemas()
  const { messages: api } = new Anthropic({ baseURL: baseURL.replace("/v1", ""), apiKey, fetch, maxRetries: 0 })
  const asked = (prompt: string) => ({ model, max_tokens: 400, messages: messages(prompt) })
  return {
    text: async (prompt, signal) => (await api.create(asked(prompt), { signal })).content[0].text,
    async *stream(prompt, signal) {
      for await (const event of api.stream(asked(prompt), { signal }))
        if (event.type === "content_block_delta") yield event.delta.text ?? ""
    },
    async object(prompt) {
      const said = await api.parse({ ...asked(prompt), output_config: { format: zodOutputFormat(answer) } })
      return said.parsed_output
    },
    async calls(prompt) {
      const { parameters, ...described } = tool
      const tools = [{ ...described, input_schema: z.toJSONSchema(parameters), strict: true }]
      const { content } = await api.create({ ...asked(prompt), tools, tool_choice: { type: "any" } })
      return content.map((one: { name: string; input: unknown }) => ({ name: one.name, arguments: one.input }))
    },
  }
}

/** By name; each is made for one endpoint. */
export const clients: Readonly<Record<string, (endpoint: Endpoint) => Promise<Client>>> = {
  "openai, chat": openaiChat,
  "openai, responses": openaiResponses,
  "AI SDK, openai-compatible": async (endpoint) => {
    const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible")
    return await aiSdk(
      createOpenAICompatible({ name: model, supportsStructuredOutputs: true, ...endpoint }).chatModel(model),
    )
  },
  "AI SDK, openai": async (endpoint) => {
    const { createOpenAI } = await load("@ai-sdk/openai")
    return await aiSdk(createOpenAI(endpoint)(model))
  },
  "LangChain.js": langChain,
  "OpenAI Agents SDK, responses": (endpoint) => agents(endpoint, true),
  "OpenAI Agents SDK, chat": (endpoint) => agents(endpoint, false),
  "Anthropic's SDK": anthropic,
}
