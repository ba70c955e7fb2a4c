import { join } from "node:path"
import { insideParent } from "../../files/inside.ts"
import { checkArguments } from "../../options/arguments.ts"
import { runFiles } from "../../runs/files.ts"
import { readReports } from "../../runs/metrics-log.ts"
import type { RunObserver } from "../../training/observers.ts"
import { GigpoError } from "../../util/errors.ts"
import { EventFile } from "./event-file.ts"

/** Options of `tensorBoard`. */
export interface TensorBoardOptions {
  /** Folder of the event files. Default: `tensorboard` in the run's folder. */
  readonly directory?: string | undefined
}

/**
 * Observer that writes every report as scalars for TensorBoard (`tensorboard --logdir runs`): each metric by its name, those of an
 * evaluation as "evaluation/…"; steps are iterations. Each process writes its own file, which begins with all earlier reports of the
 * run. So older files do not matter, and a repeated evaluation appears at its iteration.
 *
 * @throws GigpoError `BAD_ARGUMENT`
 */
export function tensorBoard(options: TensorBoardOptions = {}): RunObserver {
  checkArguments("tensorBoard", options, { directory: true })
  let folder: string | undefined
  let log: string | undefined
  let file: EventFile | undefined
  return {
    name: "tensorBoard",
    start({ directory }) {
      folder = options.directory ?? (directory && join(directory, runFiles.tensorboard))
      log = directory && join(directory, runFiles.metrics)
      if (folder === undefined)
        throw new GigpoError("BAD_ARGUMENT", "tensorBoard needs a directory if the training has no run.")
    },
    async report(report) {
      if (folder === undefined) return
      try {
        if (file) await file.add(report)
        else {
          if (options.directory === undefined) await insideParent(join(folder, "*")) // a link would lead out of the run
          const before = log === undefined ? [] : await readReports(log)
          file = await EventFile.create(folder, [...before.filter((one) => one.iteration < report.iteration), report])
        }
      } catch (error) {
        // The next report starts another file with all earlier reports.
        await file?.close()
        file = undefined
        throw error
      }
    },
    async end() {
      await file?.close()
      file = undefined // the next run starts another file
    },
  }
}
