import type { Nesting } from "../json/pieces.ts"

/** Nesting of JSON from clients and models: what reads it must not run out of stack, and each object takes memory beside its text. */
export const mostNesting: Nesting = { deepest: 200, mostParts: 2 ** 18 }
/** Messages of a request. */
export const mostMessages = 4096
/** Items of a request in the form of responses, of which a message, a thought, a call and its result are one each. */
export const mostItems: number = 4 * mostMessages
/** Tools of a request. */
export const mostTools = 1024

/** Why a JSON text from anybody is not safe to read, to be said after what it is called; undefined where it is. */
export function jsonProblem(text: string): string | undefined {
  const { deepest, mostParts } = mostNesting
  let [depth, parts, quoted] = [0, 0, false]
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (quoted) {
      if (code === 0x5c) at++
      else if (code === 0x22) quoted = false
    } else if (code === 0x22) quoted = true
    else if (code === 0x7b || code === 0x5b) {
      if (++depth > deepest) return `is nested more than ${deepest} deep`
      if (++parts > mostParts) return `has more than ${mostParts} objects and lists`
    } else if (code === 0x7d || code === 0x5d) depth--
  }
  return undefined
}
