import { GigpoError } from "../../util/errors.ts"
import { type TaskType, taskTypes } from "./generate/task-types.ts"
import type { HouseholdTask } from "./generate/tasks.ts"

/** A game of a data folder. */
export interface GameTask {
  /** Path of its `game.tw-pddl` below the data folder, with forward slashes. */
  readonly game: string
  readonly taskType: TaskType
}

/** One game to play: a file, or a household that its numbers generate. Plain data. */
export type AlfworldTask = GameTask | HouseholdTask

/** Throws `BAD_ARGUMENT` where it is no task at all; whether there is such a game, its reading tells. */
export function checkTask(task: AlfworldTask): AlfworldTask {
  const { game, seed, scene, taskType } = (task ?? {}) as Partial<GameTask & HouseholdTask>
  const isGame = typeof game === "string" || (typeof seed === "number" && typeof scene === "number")
  if (isGame && taskTypes.includes(taskType!)) return task
  throw new GigpoError(
    "BAD_ARGUMENT",
    `alfworld: a task is { game, taskType } or { seed, scene, taskType }, as tasks() gives it; its type one of ${taskTypes.join(", ")}.`,
  )
}
