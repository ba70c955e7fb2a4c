// `gigpo/environments/alfworld`: household tasks in text.

import "../../check-node.cts"

export {
  type AlfworldOptions,
  type AlfworldTask,
  alfworld,
  type HouseholdSize,
  type TaskType,
} from "../../environment/alfworld/alfworld.ts"
