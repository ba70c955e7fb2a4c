import { align } from "./alignment.ts"

/** Part of a prompt, with its line feeds. */
export interface PromptPart {
  readonly text: string
  /** Whether the part is not in the previous prompt. */
  readonly fresh: boolean
}

/** Splits a prompt by lines into new parts and parts of the previous prompt. The joined parts are the prompt. */
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
