import { gameFileText } from "../game-file.ts"
import { type GeneratedHousehold, generateHousehold } from "./generate.ts"
import type { HouseholdOptions } from "./options.ts"
import type { HouseholdTask } from "./tasks.ts"

/** Household as files in ALFWorld's layout: a folder of two files. */
export interface HouseholdFiles {
  /** Path below the folder of a split, with forward slashes. Begins with the task type, as in ALFWorld, because other software reads it. */
  readonly folder: string
  /** Contents by file name: everything that ALFWorld's text environment, goal templates and hand-coded expert read. */
  readonly files: Readonly<Record<"game.tw-pddl" | "traj_data.json", string>>
}

/**
 * Returns the files of a household for ALFWorld's own loader (`AlfredTWEnv.collect_game_files` of 0.4). Includes a solution, whose search
 * takes some milliseconds.
 *
 * @throws BAD_CONFIG for invalid options, BAD_ARGUMENT if the scene's kind of room has no tasks of the type
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
