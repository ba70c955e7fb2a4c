import { GigpoError } from "../../../util/errors.ts"
import { Random } from "../../../util/random.ts"
import { type ResolvedHouseholdOptions, rangesOf } from "./options.ts"
import { rooms } from "./rooms.ts"
import { isHeldOut, layOut, roomOf } from "./scene.ts"
import type { TaskType } from "./task-types.ts"

/** Generated household. Plain data. Equal options give equal games. */
export interface HouseholdTask {
  /** Seed of objects and goal. */
  readonly seed: number
  /** Number of the room with its receptacles. */
  readonly scene: number
  readonly taskType: TaskType
}

/** Split as in ALFWorld: `valid_seen` has the rooms of `train` with other contents, `valid_unseen` has other rooms. */
export type HouseholdSplit = "train" | "valid_seen" | "valid_unseen"

/** First validation seed; training seeds are lower. */
const firstValidSeed = 2 ** 31
/** Maximum number of consecutive draws without a suitable scene, after which the options are rejected. */
const maxMisses = 10_000

/**
 * Endless tasks: drawn from `random` for training, fixed for validation.
 *
 * @throws BAD_CONFIG if no scene of the split has tasks of these types
 */
export function* householdTasks(
  split: HouseholdSplit,
  random: Random,
  { size, taskTypes, scenes }: ResolvedHouseholdOptions,
): Generator<HouseholdTask, never, undefined> {
  const draws = (split === "train" ? random : new Random(0)).derive("households", split)
  const { receptacles } = rangesOf(size)
  const heldOut = new Map<number, boolean>()
  const isOf = (scene: number): boolean => {
    if (!heldOut.has(scene)) heldOut.set(scene, isHeldOut(layOut(scene, receptacles)))
    return heldOut.get(scene) === (split === "valid_unseen")
  }
  for (let i = 0; ; i++) {
    const taskType = taskTypes[draws.below(taskTypes.length)]!
    const scene = drawScene(taskType, scenes, isOf, draws)
    if (scene === undefined) {
      throw new GigpoError(
        "BAD_CONFIG",
        `alfworld: none of the ${scenes} scenes is a ${split} room for ${taskType}; increase scenes.`,
      )
    }
    yield { seed: split === "train" ? draws.below(firstValidSeed) : firstValidSeed + i, scene, taskType }
  }
}

function drawScene(
  taskType: TaskType,
  scenes: number,
  isOf: (scene: number) => boolean,
  random: Random,
): number | undefined {
  for (let miss = 0; miss < maxMisses; miss++) {
    const scene = random.below(scenes)
    if (rooms[roomOf(scene)].taskTypes.includes(taskType) && isOf(scene)) return scene
  }
  return undefined
}
