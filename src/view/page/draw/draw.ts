import { drawCards } from "./cards.ts"
import { drawHousehold } from "./household.ts"
import { drawSokoban } from "./sokoban.ts"

/** Longer observations are none of those that can be drawn. */
const longest = 20_000

/**
 * The state drawn, recognised by its text alone, with a text alternative; undefined where it is none that can be drawn.
 *
 * @param options.small to be looked at in the size of a stamp: words only where they can be read. Default false
 */
export function drawState(observation: string, { small = false } = {}): SVGSVGElement | undefined {
  if (observation.length > longest) return undefined
  return drawSokoban(observation, small) ?? drawCards(observation) ?? drawHousehold(observation, small)
}
