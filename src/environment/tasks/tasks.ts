import { GigpoError } from "../../errors.ts"
import { required, text } from "../../options/field.ts"
import type { OptionsOf } from "../../options/table.ts"
import type { OffersTasks } from "../environment.ts"
import { readJsonLines } from "../json-lines.ts"
import { readOptions } from "../options.ts"
import { readSplits, shuffledForever } from "../splits.ts"

export const taskFileFields = {
  tasks: required(text(undefined, "Tasks, as JSON Lines: one a line, of any kind.")),
  testTasks: text(undefined, "Held-out tasks, in a file of their own.", { otherwise: "a tenth of tasks" }),
}

export type TaskFileOptions = OptionsOf<typeof taskFileFields>

/**
 * Tasks alone, for agents that play by themselves: what stands in the lines of a file, read once. Train tasks come shuffled, again and
 * again; held-out ones in their order.
 *
 * Throws `BAD_CONFIG` where options are wrong, `BAD_DATA` where a file cannot be read, has a line that is no JSON, or too few.
 */
export async function taskFile(options: TaskFileOptions): Promise<OffersTasks> {
  const { tasks, testTasks } = readOptions("tasks", options, taskFileFields)
  const { train, test } = await readSplits<unknown>(tasks, testTasks, {
    what: "tasks",
    environment: "tasks",
    read: readTasks,
    keyOf: (task) => JSON.stringify(task),
  })
  return { name: "tasks", tasks: (split, random) => (split === "test" ? test : shuffledForever(train, random)) }
}

async function readTasks(path: string): Promise<readonly unknown[]> {
  const tasks: unknown[] = []
  for await (const { value } of readJsonLines(path)) tasks.push(value)
  if (tasks.length === 0) throw new GigpoError("BAD_DATA", `${path} has no tasks.`)
  return tasks
}
