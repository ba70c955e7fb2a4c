import type { Command } from "commander"
import { isThere } from "../../files/io-error.ts"
import { recover } from "../../runs/recover.ts"
import { GigpoError } from "../../util/errors.ts"
import { Screen } from "../terminal/screen.ts"

export function recoverCommand(command: Command): Command {
  return command
    .description(
      "Writes that a crash interrupted are finished when their folder is opened next, on the machine that began them. This finishes those of " +
        "another machine, user or container in the folder of a model or run: only where you trust who made the folder, since its files are " +
        "replaced by what waits there.",
    )
    .argument("<folder>", "folder of a model or of a run")
    .action(async (folder: string) => {
      if (!(await isThere(folder))) throw new GigpoError("BAD_ARGUMENT", `There is no folder ${folder}.`)
      const finished = await recover(folder)
      const screen = new Screen(process.stdout, { live: false })
      for (const one of finished) screen.print(`Finished what was interrupted in ${one}.`)
      if (finished.length === 0) screen.print(`Nothing was interrupted in ${folder}.`)
    })
}
