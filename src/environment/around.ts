import type { Environment } from "./environment.ts"

/** Parts of an environment that a wrapper passes on unchanged: name, tasks, task files and prompt memory. */
export function around<Task>(
  environment: Environment<Task>,
): Pick<Environment<Task>, "name" | "taskFiles" | "tasks" | "memory"> {
  return {
    name: environment.name,
    taskFiles: environment.taskFiles,
    tasks: (split, random) => environment.tasks(split, random),
    memory: environment.memory,
  }
}
