import { integer } from "../../options/field.ts"
import type { Turn } from "../environment.ts"
import { readTagged } from "../tags.ts"

// Notes that the policy writes into its own replies, beside the action: no call of their own, and learned from with the reply.

/** What stands between the tags in the last reply that has them, cut to so many characters; "" where none does. */
export function lastNote(history: readonly Turn[], tag: string, longest: number): string {
  for (let at = history.length - 1; at >= 0; at--) {
    const { answer } = readTagged(history[at]!.reply, tag)
    if (answer !== undefined) return Array.from(answer).slice(0, longest).join("")
  }
  return ""
}

/** A paragraph under its title; nothing where there is no text. */
export function titled(title: string, text: string): string[] {
  return text === "" ? [] : [`${title}\n${text}`]
}

export const longestNote = integer(2000, "Characters of a note that are kept.", { min: 1 })
