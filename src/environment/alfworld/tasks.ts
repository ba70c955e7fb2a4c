import { GigpoError } from "../../util/errors.ts"
import { type TaskType, taskTypes } from "./generate/task-types.ts"
import type { HouseholdTask } from "./generate/tasks.ts"

/** Game of a data folder. */
export interface GameTask {
  /** Path of the file `game.tw-pddl` relative to the data folder, with forward slashes. */
  readonly game: string
  readonly taskType: TaskType
}

/** Task of ALFWorld: a game file, or the numbers of a generated household. Plain data. */
export type AlfworldTask = GameTask | HouseholdTask

/** Checks the form of a task. Throws `BAD_ARGUMENT`. Whether a game file exists is checked when it is read. */
export function checkTask(task: AlfworldTask): AlfworldTask {
  const { game, seed, scene, taskType } = (task ?? {}) as Partial<GameTask & HouseholdTask>
  const isGame = typeof game === "string" || (typeof seed === "number" && typeof scene === "number")
  if (isGame && taskTypes.includes(taskType!)) return task
  throw new GigpoError(
    "BAD_ARGUMENT",
    `alfworld: a task must be { game, taskType } or { seed, scene, taskType }, as tasks() returns it; taskType is one of ${taskTypes.join(", ")}.`,
  )
}
