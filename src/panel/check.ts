import { GigpoError } from "../util/errors.ts"
import type { PanelDefinition } from "./definition.ts"
import { tasksDigest } from "./digest.ts"
import type { PanelTask } from "./tasks.ts"

/** Checks that the tasks are those of the panel. */
export async function checkTasks(panel: PanelDefinition, tasks: readonly PanelTask[]): Promise<void> {
  const { digests, keys, tasks: choice } = panel
  if (tasks.length !== choice.count)
    throw other(panel, `${tasks.length} tasks are there, of ${choice.count}`, "is not complete")
  if ((await tasksDigest(tasks)) === digests.tasks) return
  const first = keys ? tasks.findIndex(({ key }, index) => key !== keys[index]) : -1
  const which =
    first >= 0 ? `task ${first} (${tasks[first]!.key} in place of ${keys![first]}) is the first other one` : ""
  throw other(panel, which || `its ${choice.count} tasks are others`, "is other data, or in another order")
}

/** Checks that the responses of the environment are those of the panel. */
export function checkWorld(panel: PanelDefinition, world: string): void {
  if (world === panel.digests.world) return
  throw other(panel, "the tasks are the same, but the environment answers otherwise", "is other data")
}

function other({ name, environment, places }: PanelDefinition, what: string, data: string): GigpoError {
  const mend =
    places.length > 0
      ? `What ${places.join(" and ")} of ${environment} names ${data}, or this version of gigpo plays by other rules: give the data that the panel was made of, with the version that it was made with.`
      : "This version of gigpo plays by other rules than the one that the panel was made with: use that one, or a newer version of the panel."
  return new GigpoError("BAD_DATA", `This is not the panel ${name}: ${what}. ${mend}`)
}
