import { drawCards } from "./cards.ts"
import { drawHousehold } from "./household.ts"
import { drawSokoban } from "./sokoban.ts"

/** Maximum length of observations that are drawn. */
const longest = 20_000

/**
 * Drawing of a state, recognized by its text, with a text alternative; undefined for texts that cannot be drawn.
 *
 * @param options.small - for small sizes: words only if legible. Default false
 */
export function drawState(observation: string, { small = false } = {}): SVGSVGElement | undefined {
  if (observation.length > longest) return undefined
  return drawSokoban(observation, small) ?? drawCards(observation) ?? drawHousehold(observation, small)
}
