import type { Environment } from "./environment.ts"

/** What an environment that is built around another one leaves as it is: its name, its tasks, and what its prompts remember. */
export function around<Task>(environment: Environment<Task>): Pick<Environment<Task>, "name" | "tasks" | "memory"> {
  return {
    name: environment.name,
    tasks: (split, random) => environment.tasks(split, random),
    memory: environment.memory,
  }
}
