import type { Nesting } from "../json/pieces.ts"

/**
 * Limits of JSON from clients and models, against stack overflow and memory use per object. Constrained completions
 * have at most 256 levels (`most_depth` in core/grammar/grammar.h), and are sent back within a request.
 */
export const mostNesting: Nesting = { deepest: 272, mostParts: 2 ** 18 }
/** Maximum number of messages in a request. */
export const mostMessages = 4096
/**
 * Maximum number of items in a request of the Responses API, where message, thinking, call and result are separate
 * items.
 */
export const mostItems: number = 4 * mostMessages
/** Maximum number of tools in a request. */
export const mostTools = 1024

/** Why untrusted JSON exceeds the limits, as the end of a sentence; undefined if it does not. */
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
      if (++depth > deepest) return `is nested more than ${deepest} levels deep`
      if (++parts > mostParts) return `has more than ${mostParts} objects and lists`
    } else if (code === 0x7d || code === 0x5d) depth--
  }
  return undefined
}
