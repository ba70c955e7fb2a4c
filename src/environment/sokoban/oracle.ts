import type { Observation } from "../environment.ts"
import { move } from "./move.ts"
import { directions, formatRoom, parseRoom, type Room } from "./room.ts"
import { solve } from "./solve.ts"

/** Maximum number of states whose distance is kept. */
const mostKnown = 100_000

/**
 * Verification of actions by the solver, as in the authors' code of VPR (thu-nics/VPR): 1 for a move on a shortest solution, 0 for another
 * one, -1 for a move that changes nothing or after which no solution is left. undefined where there was no solution before.
 */
export function sokobanOracle(): (now: Observation, action: string) => number | undefined {
  /** Number of moves of a shortest solution, by the text of a room; undefined for a room without a solution. */
  const known = new Map<string, number | undefined>()
  const distance = (room: Room): number | undefined => {
    const text = formatRoom(room)
    if (known.has(text)) return known.get(text)
    if (known.size > mostKnown) known.clear()
    const solution = solve(room)
    known.set(text, solution?.length)
    let at = room
    for (const [played, direction] of (solution ?? []).entries()) {
      at = move(at, direction)
      known.set(formatRoom(at), solution!.length - played - 1)
    }
    return solution?.length
  }
  return (now, action) => {
    const direction = directions.find((one) => one === action)
    const room = parseRoom(now.text)
    const next = direction ? move(room, direction) : room
    const before = distance(room)
    if (before === undefined) return undefined
    const after = next === room ? undefined : distance(next)
    if (after === undefined) return -1
    return after < before ? 1 : 0
  }
}
