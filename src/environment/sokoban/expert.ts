import type { Expert } from "../environment.ts"
import { move } from "./move.ts"
import { type Direction, formatRoom, parseRoom } from "./room.ts"
import { solve } from "./solve.ts"

/**
 * Plays a shortest solution from wherever the game stands; silent where the room can no longer be solved. It replies in
 * the fewest words that the parser finds valid, so it thinks only where it must.
 */
export function sokobanExpert(thinks: boolean): Expert {
  // One search answers every position along its solution, so an expert that is followed searches once.
  const known = new Map<string, Direction | undefined>()
  return {
    reply(now) {
      if (!known.has(now.text)) {
        let room = parseRoom(now.text)
        const solution = solve(room)
        if (!solution?.length) known.set(now.text, undefined)
        for (const direction of solution ?? []) {
          known.set(formatRoom(room), direction)
          room = move(room, direction)
        }
      }
      const direction = known.get(now.text)
      if (!direction) return undefined
      const thought = thinks ? `<think>A shortest solution goes ${direction} now.</think>` : ""
      return `${thought}<action>${direction}</action>`
    },
  }
}
