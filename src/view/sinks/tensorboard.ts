import { join } from "node:path"
import { GigpoError } from "../../errors.ts"
import { checkArguments } from "../../options/arguments.ts"
import { readReports } from "../../training/metrics-log.ts"
import type { RunObserver } from "../../training/observers.ts"
import { runFiles } from "../../training/run-files.ts"
import { EventFile } from "./event-file.ts"

export interface TensorBoardOptions {
  /** Where the event files go. Default: `tensorboard` in the run's folder. */
  readonly directory?: string | undefined
}

/**
 * Writes every report as scalars that TensorBoard shows (`tensorboard --logdir runs`): each metric by its name, those of an evaluation
 * as "evaluation/…"; steps are iterations. Every process writes a file of its own, which begins with what the run reported before: it
 * does not matter what older files hold, and an evaluation that is made up for stands in its place.
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
        throw new GigpoError("BAD_ARGUMENT", "tensorBoard needs a directory where the training has no run.")
    },
    async report(report) {
      if (folder === undefined) return
      try {
        if (file) await file.add(report)
        else {
          const before = log === undefined ? [] : await readReports(log)
          file = await EventFile.create(folder, [...before.filter((one) => one.iteration < report.iteration), report])
        }
      } catch (error) {
        // The next report begins another file, which lacks nothing.
        await file?.close()
        file = undefined
        throw error
      }
    },
    async end() {
      await file?.close()
      file = undefined // another run begins another
    },
  }
}
