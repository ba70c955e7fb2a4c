import type { AgentContext } from "../../src/agents/agent.ts"

// A client without a library, in the few lines that agents of the tests need.

export type Message = Record<string, unknown>

export const user = (content: string): Message => ({ role: "user", content })

/** The messages that a call gave, one a choice. */
export async function askAll(
  { openai, model, signal }: AgentContext,
  messages: readonly Message[],
  more: object = {},
  fetch = openai.fetch,
): Promise<Message[]> {
  const response = await fetch(`${openai.baseURL}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${openai.apiKey}`, "content-type": "application/json" },
    body: JSON.stringify({ model, messages, ...more }),
    signal,
  })
  const body = (await response.json()) as { error: { message: string }; choices: { message: Message }[] }
  if (!response.ok) throw new Error(body.error.message)
  return body.choices.map(({ message }) => message)
}

/** Its only one. */
export async function ask(...call: Parameters<typeof askAll>): Promise<Message> {
  return (await askAll(...call))[0]!
}
