import type { TaskType } from "./generate/task-types.ts"
import type { HouseholdTask } from "./generate/tasks.ts"

/** A game of a data folder. */
export interface GameTask {
  /** Path of its `game.tw-pddl` below the data folder, with forward slashes. */
  readonly game: string
  readonly taskType: TaskType
}

/** One game to play: a file, or a household that its numbers generate. Plain data. */
export type AlfworldTask = GameTask | HouseholdTask
