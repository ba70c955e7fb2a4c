import { compactJson, parseJson, stringify } from "../../json/text.ts"
import { required, string } from "../../options/field.ts"
import type { OptionsOf } from "../../options/table.ts"
import { GigpoError } from "../../util/errors.ts"
import type { OffersTasks } from "../environment.ts"
import { readJsonLines } from "../json-lines.ts"
import { readOptions } from "../options.ts"
import { readSplits, shuffledForever } from "../splits.ts"

export const taskFileFields = {
  tasks: required(string(undefined, "Tasks, as JSON Lines: one a line, of any kind.")),
  testTasks: string(undefined, "Held-out tasks, in a file of their own.", { defaultText: "a tenth of tasks" }),
}

/** Options of `taskFile`. */
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
        `${path}, line ${number} is a number too large to be kept; write it as a string.`,
      )
    tasks.push(value)
  }
  if (tasks.length === 0) throw new GigpoError("BAD_DATA", `${path} has no tasks.`)
  return tasks
}
