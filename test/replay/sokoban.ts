import { generateRoom } from "../../src/environment/sokoban/generate.ts"
import { boxesOnTarget, isSolved, move } from "../../src/environment/sokoban/move.ts"
import { directions, isTarget, type Room } from "../../src/environment/sokoban/room.ts"
import { solve } from "../../src/environment/sokoban/solve.ts"
import type { Difference, Replay } from "./replay.ts"

/** A room that gym-sokoban's generator gave for a seed, with a shortest solution (actions 1 to 4), or its error. */
interface RoomRecord {
  readonly seed: number
  readonly dim: readonly [height: number, width: number]
  readonly boxes: number
  readonly depth: number
  readonly fixed?: readonly (readonly number[])[]
  readonly state?: readonly (readonly number[])[]
  readonly solution?: readonly number[] | null
  readonly error?: string
}

/**
 * Every recorded room must be generated to the cell, be solved by its recorded solution, no sooner than by its last move, and have no
 * shorter one.
 */
export const replaySokoban: Replay = async function* (_data, records) {
  for await (const record of records as AsyncIterable<RoomRecord>) yield roomDifferences(record)
}

function roomDifferences(record: RoomRecord): Difference[] {
  const { seed, dim, boxes, depth, error, solution } = record
  const differences: Difference[] = []
  const compare = (what: string, expected: unknown, actual: unknown) => {
    const [want, found] = [JSON.stringify(expected), JSON.stringify(actual)]
    if (want !== found) differences.push({ where: `seed ${seed}: ${what}`, expected: want, actual: found })
  }
  const room = generateRoom(seed, { size: dim, boxes, searchDepth: depth })
  if (typeof room === "string" || error !== undefined) {
    compare("error", error, typeof room === "string" ? room : undefined)
    return differences
  }
  const cells = Array.from(room.cells)
  compare("walls and targets", record.fixed?.flat(), cells.map(fixedCell))
  compare("start", record.state?.flat(), cells.map(startCell))
  if (!solution) return differences
  compare("moves that solve it", solution.length, solvedAfter(room, solution))
  compare("length of a shortest solution", solution.length, solve(room)?.length)
  return differences
}

/** The cells in the recording's numbers: what does not move, and the start, where a player on a target is only a player. */
const fixedCell = (cell: number) => (cell === 0 ? 0 : isTarget(cell) ? 2 : 1)
const startCell = (cell: number) => (cell === 6 ? 5 : cell)

/** After how many of these moves every box first stands on a target; `undefined` where it never does. */
function solvedAfter(start: Room, actions: readonly number[]): number | undefined {
  let room = start
  for (const [index, action] of actions.entries()) {
    room = move(room, directions[action - 1]!)
    if (isSolved(room) && boxesOnTarget(room) > 0) return index + 1
  }
  return undefined
}
