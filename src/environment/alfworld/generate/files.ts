import { gameFileText } from "../game-file.ts"
import { type GeneratedHousehold, generateHousehold } from "./generate.ts"
import type { HouseholdOptions } from "./options.ts"
import type { HouseholdTask } from "./tasks.ts"

/** A household as ALFWorld keeps its games: a folder of two files. */
export interface HouseholdFiles {
  /** Below the folder of a split, with slashes; as in ALFWorld it begins with the type of the task, which others read from it. */
  readonly folder: string
  /** By name: all that ALFWorld's text environment, its templates of goals and its hand-coded expert read. */
  readonly files: Readonly<Record<"game.tw-pddl" | "traj_data.json", string>>
}

/**
 * The files of a household for ALFWorld's own loader (`AlfredTWEnv.collect_game_files` of 0.4). The way to win is searched for, which takes
 * some milliseconds.
 *
 * @throws BAD_CONFIG where options are wrong, BAD_ARGUMENT where the scene's kind of room has no tasks of the type
 */
export function householdFiles(task: HouseholdTask, options: HouseholdOptions): HouseholdFiles {
  const household = generateHousehold(task, options)
  const { taskType, object, target } = household.assignment
  const trial = `trial_T${task.seed}`
  return {
    folder: `${taskType}-${object}-None-${target}-${task.scene}/${trial}`,
    files: { "game.tw-pddl": gameFileText(household), "traj_data.json": trajectoryText(household, trial) },
  }
}

function trajectoryText({ assignment, sentence }: GeneratedHousehold, trial: string): string {
  const { taskType, object, target } = assignment
  const isLamp = taskType === "look_at_obj_in_light"
  return `${JSON.stringify({
    task_id: trial,
    task_type: taskType,
    pddl_params: {
      object_target: object,
      object_sliced: false,
      parent_target: isLamp ? "" : target,
      mrecep_target: "",
      toggle_target: isLamp ? target : "",
    },
    turk_annotations: { anns: [{ task_desc: sentence, high_descs: [], votes: [] }] },
  })}\n`
}
