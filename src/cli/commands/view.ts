import { once } from "node:events"
import type { Command } from "commander"
import { openView } from "../../view/serve/view.ts"
import { list, wholeNumber } from "../arguments.ts"
import { describeFailure } from "../fail.ts"
import { activity } from "../terminal/activity.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { Screen } from "../terminal/screen.ts"
import { foldersOfRuns, usualPlaces } from "../usual-runs.ts"

interface ViewArguments {
  readonly host: string
  readonly port: number
  readonly allowHost: readonly string[]
}

export function viewCommand(command: Command): Command {
  return command
    .description(
      "Shows curves, episodes, anchor states and settings of runs on a web page. The first line of standard " +
        "output is its address with an access token. The page is read-only. Ctrl-C stops the server.",
    )
    .argument("[runs...]", `folders of runs, or folders that contain runs (new runs appear); ${usualPlaces}`)
    .option("--host <address>", "address to listen on; 0.0.0.0: all interfaces", "127.0.0.1")
    .option("-p, --port <number>", "port to listen on; 0: any free port", wholeNumber(0, 65_535), 8070)
    .option("--allow-host <name>", "additional host name of the page, e.g. of a proxy; repeatable", list)
    .action((runs, options) => interruptible((signal) => runView(runs, options, signal)))
}

async function runView(runs: readonly string[], options: ViewArguments, signal: AbortSignal): Promise<void> {
  const { host, port, allowHost: names = [] } = options
  const log = new Screen(process.stderr, { live: false })
  const onError = (error: unknown) => log.print(describeFailure(error))
  const folders = await foldersOfRuns(runs)
  await using view = await activity.during(`reading ${folders.join(", ")}`, () =>
    openView(folders, { host, port, names, rememberBrowsers: true, onError }),
  )
  process.stdout.write(`${view.url}\n`)
  log.print("Open this address in a browser; Ctrl-C stops the server.")
  if (!signal.aborted) await activity.idle(() => once(signal, "abort"))
}
