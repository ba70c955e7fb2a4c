import type { Environment } from "./environment.ts"

/** What an environment that is built around another one leaves as it is: its name, its tasks and their files, and what its prompts remember. */
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
