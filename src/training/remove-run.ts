import { readdir, rm, rmdir } from "node:fs/promises"
import { join } from "node:path"
import { io } from "../files/io-error.ts"

/** Removes a run that has served its purpose and is closed; what others put into its folder stays there. */
export async function removeRun(folder: string): Promise<void> {
  // The configuration goes last: it marks the folder as a run until then.
  for (const name of ["checkpoints", "metrics.jsonl", "config.json"])
    await io("remove", join(folder, name), rm(join(folder, name), { recursive: true, force: true }))
  if ((await io("read", folder, readdir(folder))).length === 0) await io("remove", folder, rmdir(folder))
}
