// `gigpo/environments/tasks`: single-step tasks from a file.

import "../../check-node.cts"

export { type TaskFileOptions, taskFile } from "../../environment/tasks/tasks.ts"
