import { compactJson, parseJson, stringify } from "../../json/text.ts"
import { required, string } from "../../options/field.ts"
import type { OptionsOf } from "../../options/table.ts"
import { GigpoError } from "../../util/errors.ts"
import type { TaskProvider } from "../environment.ts"
import { readJsonLines } from "../json-lines.ts"
import { readOptions } from "../options.ts"
import { readSplits, shuffledForever } from "../splits.ts"

export const taskFileFields = {
  tasks: required(string(undefined, "File of tasks in JSON Lines: any JSON value per line.")),
  testTasks: string(undefined, "File of held-out tasks.", { defaultText: "a tenth of tasks" }),
}

/** Options of `taskFile`. */
export type TaskFileOptions = OptionsOf<typeof taskFileFields>

/**
 * Tasks from a JSON Lines file, for agents. The file is read once. Training tasks are repeated endlessly, in a new random order each time;
 * held-out tasks keep their order.
 *
 * @throws BAD_CONFIG for invalid options, BAD_DATA if a file cannot be read, has a line that is not JSON, or has too few tasks
 */
export async function taskFile(options: TaskFileOptions): Promise<TaskProvider> {
  const { tasks, testTasks } = readOptions("tasks", options, taskFileFields)
  const { train, test } = await readSplits<unknown>(tasks, testTasks, {
    what: "tasks",
    environment: "tasks",
    read: readTasks,
    keyOf: (task) => compactJson(stringify(task)),
  })
  const taskFiles = { tasks, testTasks }
  return {
    name: "tasks",
    taskFiles,
    tasks: (split, random) => (split === "test" ? test : shuffledForever(train, random)),
  }
}

async function readTasks(path: string): Promise<readonly unknown[]> {
  const tasks: unknown[] = []
  for await (const { number, value } of readJsonLines(path, undefined, parseJson)) {
    if (Number.isInteger(value) && !Number.isSafeInteger(value))
      throw new GigpoError(
        "BAD_DATA",
        `${path}, line ${number} is an integer beyond ±(2^53 - 1); write it as a string.`,
      )
    tasks.push(value)
  }
  if (tasks.length === 0) throw new GigpoError("BAD_DATA", `${path} has no tasks.`)
  return tasks
}
