import { resolveFolder } from "../files/atomic-directory.ts"
import { inside } from "../files/inside.ts"
import { acquireLock, releaseLock } from "../files/lock.ts"
import { checkpointsIn } from "../files/manifest.ts"
import { settleFolder } from "../files/replace-files.ts"
import { runFiles } from "./files.ts"
import { folderState } from "./folder.ts"
import { hasReplaced, settleRun } from "./replaced.ts"

/**
 * Completes interrupted writes in the folder of a model or a run that the journal of this machine does not know: those of another machine,
 * user or container, or from before the folder was moved. Links are still rejected.
 *
 * @returns folders in which a write was completed
 * @throws GigpoError `UNSAFE_PATH` for a link, `RUN_LOCKED` for a run that another process uses, `IO` for an error of the system.
 */
export async function recover(folder: string): Promise<string[]> {
  const path = await resolveFolder(folder)
  if ((await folderState(path)) !== "run") return await recoverFolder(path)
  const lock = await acquireLock(await inside(path, runFiles.lock))
  try {
    const found = (await hasReplaced(path)) ? [path] : []
    await settleRun(path, { accept: true })
    const parent = await inside(path, runFiles.checkpoints)
    const checkpoints = (await checkpointsIn(parent)).map(({ name }) => `${runFiles.checkpoints}/${name}`)
    for (const name of [runFiles.model, ...checkpoints]) found.push(...(await recoverFolder(await inside(path, name))))
    return found
  } finally {
    await releaseLock(lock)
  }
}

async function recoverFolder(folder: string): Promise<string[]> {
  return (await settleFolder(folder, { accept: true, tidy: true })) ? [folder] : []
}
