import type { Command } from "commander"
import { isThere } from "../../files/io-error.ts"
import { recover } from "../../runs/recover.ts"
import { GigpoError } from "../../util/errors.ts"
import { Screen } from "../terminal/screen.ts"

export function recoverCommand(command: Command): Command {
  return command
    .description(
      "A write that a crash interrupted is finished when its folder is opened again on the same machine. This command finishes writes of " +
        "another machine, user or container in the folder of a model or run. Use it only if you trust the author of the folder: its files are " +
        "replaced by the pending ones.",
    )
    .argument("<folder>", "folder of a model or of a run")
    .action(async (folder: string) => {
      if (!(await isThere(folder))) throw new GigpoError("BAD_ARGUMENT", `There is no folder ${folder}.`)
      const finished = await recover(folder)
      const screen = new Screen(process.stdout, { live: false })
      for (const one of finished) screen.print(`Finished the interrupted write in ${one}.`)
      if (finished.length === 0) screen.print(`No interrupted write in ${folder}.`)
    })
}
