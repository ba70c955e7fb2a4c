import { GigpoError } from "../../../util/errors.ts"
import { Random } from "../../../util/random.ts"
import { type ResolvedHouseholdOptions, rangesOf } from "./options.ts"
import { rooms } from "./rooms.ts"
import { isHeldOut, layOut, roomOf } from "./scene.ts"
import type { TaskType } from "./task-types.ts"

/** One household to play. Plain data; with the same options it always gives the same game. */
export interface HouseholdTask {
  /** What the room holds and what is asked. */
  readonly seed: number
  /** The room and what stands in it. */
  readonly scene: number
  readonly taskType: TaskType
}

/** As ALFWorld's: `valid_seen` has the rooms of `train` with other contents, `valid_unseen` rooms never trained on. */
export type HouseholdSplit = "train" | "valid_seen" | "valid_unseen"

/** Seeds of training lie below, those of validation from here on. */
const firstValidSeed = 2 ** 31
/** So many draws in a row without a scene that suits mean that there is none. */
const maxMisses = 10_000

/**
 * Endless tasks: drawn from `random` for training, always the same for validation.
 *
 * @throws BAD_CONFIG where no scene of this split has tasks of these types
 */
export function* householdTasks(
  split: HouseholdSplit,
  random: Random,
  { size, taskTypes, scenes }: ResolvedHouseholdOptions,
): Generator<HouseholdTask, never, undefined> {
  const draws = (split === "train" ? random : new Random(0)).fork("households", split)
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
        `alfworld: none of the ${scenes} scenes is a ${split} room for ${taskType}; make scenes larger.`,
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
