import { dirname } from "node:path"
import { noteWritten } from "../../files/written-here.ts"
import { reachesOf } from "./reaches.ts"
import { readDocument, resolveDocument } from "./resolve.ts"

/** Records the config.json of a run as this user's own, if a later command would require --trust. */
export async function noteOwnRun(path: string): Promise<void> {
  const parsed = await readDocument(path, [])
  if (reachesOf(resolveDocument(parsed), parsed, dirname(path)).length > 0) await noteWritten(path)
}
