import { align } from "./alignment.ts"

/** A part of a prompt, with its line feeds. */
export interface PromptPart {
  readonly text: string
  /** Whether it did not stand in the prompt before. */
  readonly fresh: boolean
}

/** What of a prompt was new to the model, by lines: parts that joined are the prompt. */
export function newLines(prompt: string, before: string | undefined): PromptPart[] {
  if (before === undefined) return [{ text: prompt, fresh: true }]
  const [old, now] = [lines(before), lines(prompt)]
  const parts: { text: string; fresh: boolean }[] = []
  for (const { left, right } of align(old, now)) {
    if (right === undefined) continue
    const fresh = left === undefined
    const last = parts.at(-1)
    if (last?.fresh === fresh) last.text += now[right]!
    else parts.push({ text: now[right]!, fresh })
  }
  return parts
}

function lines(text: string): string[] {
  return text.split(/(?<=\n)/)
}
