import type { Message } from "./environment.ts"

/** The same messages with a text at the end of the last, after an empty line. */
export function addToPrompt(messages: readonly Message[], text: string): Message[] {
  const last = messages.at(-1)
  return last ? [...messages.slice(0, -1), { ...last, content: `${last.content}\n\n${text}` }] : []
}
