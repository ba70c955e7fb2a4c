import { stat } from "node:fs/promises"
import { io } from "../files/io-error.ts"
import { hashFile } from "../files/manifest.ts"
import { GigpoError } from "../util/errors.ts"
import type { Checkpoint } from "./checkpoint.ts"

/** SHA-256 digests of the task files of an environment, by option. */
export type TaskDigests = Readonly<Record<string, string>>

/** Maximum size of a file with a digest, in bytes. */
const largest = 64e6

/** Returns the digests of an environment's task files of up to 64 MB. */
export async function digestTasks(
  files: Readonly<Record<string, string | undefined>> = {},
): Promise<TaskDigests | undefined> {
  const digests: Record<string, string> = {}
  for (const [option, path] of Object.entries(files)) {
    if (path === undefined) continue
    const found = await io("read", path, stat(path))
    if (found.isFile() && found.size <= largest) digests[option] = await io("read", path, hashFile(path))
  }
  return Object.keys(digests).length > 0 ? digests : undefined
}

/**
 * Checks that environment and task files are those that a checkpoint was written with.
 *
 * @throws GigpoError `BAD_CONFIG` for an environment with another name or other task files.
 */
export function checkSameEnvironment(
  { directory, environment, taskFiles }: Checkpoint,
  now: Pick<Checkpoint, "environment" | "taskFiles">,
): void {
  const way = "Restore it to resume, or fork the run into a new folder."
  if (environment === undefined || now.environment === undefined) return
  if (environment !== now.environment)
    throw new GigpoError(
      "BAD_CONFIG",
      `The checkpoint ${directory} was written in the environment ${environment}, not in ${now.environment}. ${way}`,
    )
  if (taskFiles === undefined) return // of an older version, or without files
  const options = [...new Set([...Object.keys(taskFiles), ...Object.keys(now.taskFiles ?? {})])]
  const changed = options.filter((option) => taskFiles[option] !== now.taskFiles?.[option])
  if (changed.length === 0) return
  const what = changed.map((option) => `environment.${option}`).join(", ")
  throw new GigpoError(
    "BAD_CONFIG",
    `The file of ${what} has changed since the checkpoint ${directory} was written (its SHA-256 differs). ${way}`,
  )
}
