import { GigpoError } from "../../util/errors.ts"
import { Random } from "../../util/random.ts"
import { taskSeeds } from "../seeds.ts"
import { generateRoom } from "./generate.ts"
import type { SokobanSettings } from "./options.ts"
import { Cell, formatRoom, isTarget, type Room } from "./room.ts"

/** One room to solve. Plain data; `room` alone decides the episode, so a level written by hand will do. */
export interface SokobanTask {
  /** The seed that gives this room in gym-sokoban's generator. */
  readonly seed: number
  /** The start, as `formatRoom` writes it. */
  readonly room: string
}

/** So many seeds in a row without a room mean that the options allow none (a test room comes every 8 seeds or so). */
const maxMisses = 1000

/**
 * Endless rooms: seeds drawn at random for training, and always the same for the test, 65536 upwards. Where a seed
 * gives no room, or one of the other split, the next draw or seed takes its place.
 */
export function* sokobanTasks(
  split: "train" | "test",
  random: Random,
  options: SokobanSettings,
): Generator<SokobanTask, void, undefined> {
  let misses = 0
  for (const seed of taskSeeds(split, random, "sokoban seeds")) {
    const room = generateRoom(seed, options)
    const fits = typeof room !== "string" && (options.heldOut === "seed" || isTestLayout(room) === (split === "test"))
    if (fits) yield { seed, room: formatRoom(room) }
    misses = fits ? 0 : misses + 1
    if (misses === maxMisses) break
  }
  throw new GigpoError(
    "BAD_CONFIG",
    `sokoban: none of ${maxMisses} seeds gave a ${split} room of ${options.size.join(" × ")} cells with boxes: ` +
      `${options.boxes}; make size or searchDepth larger or boxes fewer.`,
  )
}

/** One layout in eight, by a hash of its walls and targets, which no move changes. */
function isTestLayout(room: Room): boolean {
  const layout = Array.from(room.cells, (cell) => (cell === Cell.wall ? "#" : isTarget(cell) ? "O" : "_")).join("")
  return new Random(0).fork("sokoban layout", room.width, layout).below(8) === 0
}
