import { GigpoError } from "../../util/errors.ts"
import { Random } from "../../util/random.ts"
import { taskSeeds } from "../seeds.ts"
import { generateRoom } from "./generate.ts"
import type { SokobanSettings } from "./options.ts"
import { Cell, formatRoom, isTarget, type Room } from "./room.ts"

/** Room to solve. Plain data. Only `room` determines the episode, so levels written by hand are possible. */
export interface SokobanTask {
  /** Seed of gym-sokoban's generator that gives the room. */
  readonly seed: number
  /** Start state: one symbol per cell, cells separated by spaces, rows by line breaks. */
  readonly room: string
}

/** Maximum number of consecutive seeds without a room, after which the options are rejected. About every 8th seed gives a test room. */
const maxMisses = 1000

/**
 * Endless rooms: from random seeds for training, and from the seeds 65536, 65537, … for the test. Seeds without a room, or with a room of
 * the other split, are skipped.
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
      `${options.boxes}; increase size or searchDepth, or decrease boxes.`,
  )
}

/** Whether a room belongs to the test: one layout in eight, by a hash of walls and targets, which moves do not change. */
function isTestLayout(room: Room): boolean {
  const layout = Array.from(room.cells, (cell) => (cell === Cell.wall ? "#" : isTarget(cell) ? "O" : "_")).join("")
  return new Random(0).derive("sokoban layout", room.width, layout).below(8) === 0
}
