import { GigpoError } from "../util/errors.ts"
import type { PanelDefinition } from "./definition.ts"
import { tasksDigest } from "./digest.ts"
import type { PanelTask } from "./tasks.ts"

/** Checks that the tasks are those of the panel. */
export async function checkTasks(panel: PanelDefinition, tasks: readonly PanelTask[]): Promise<void> {
  const { digests, keys, tasks: choice } = panel
  if (tasks.length !== choice.count)
    throw other(panel, `there are ${tasks.length} tasks instead of ${choice.count}`, "are incomplete")
  if ((await tasksDigest(tasks)) === digests.tasks) return
  const first = keys ? tasks.findIndex(({ key }, index) => key !== keys[index]) : -1
  const which =
    first >= 0 ? `task ${first} is the first that differs (${tasks[first]!.key} instead of ${keys![first]})` : ""
  throw other(panel, which || `the ${choice.count} tasks differ`, "differ, or have another order")
}

/** Checks that the responses of the environment are those of the panel. */
export function checkWorld(panel: PanelDefinition, world: string): void {
  if (world === panel.digests.world) return
  throw other(panel, "the tasks are the same, but the environment responds differently", "differ")
}

function other({ name, environment, places }: PanelDefinition, what: string, data: string): GigpoError {
  const fix =
    places.length > 0
      ? `The data of ${places.join(" and ")} (${environment}) ${data}, or the rules of this version of gigpo differ. Use the data and the version of gigpo that the panel was made with.`
      : "The rules of this version of gigpo differ from those of the version that the panel was made with. Use that version, or a newer version of the panel."
  return new GigpoError("BAD_DATA", `This is not the panel ${name}: ${what}. ${fix}`)
}
