import { setMaxListeners } from "node:events"
import { basename } from "node:path"
import { setImmediate } from "node:timers/promises"
import { isMainThread } from "node:worker_threads"
import { parseCheckpointName } from "../files/manifest.ts"
import { linkAbort } from "../util/linked-abort.ts"
import { onStops, type Stopped, stopNames } from "../util/stop-signals.ts"
import { warn, warner } from "../util/warn.ts"
import type { Run } from "./run.ts"

/** Arguments of work that a signal can stop. */
export interface Stoppable {
  readonly run?: Run | undefined
  readonly signal?: AbortSignal | undefined
  /**
   * Whether Ctrl-C, SIGTERM and SIGHUP save the run before they end the process. A second signal ends the process immediately. Signals with a
   * listener of the program are not handled, nor are signals in worker threads. Default true. Without a run nothing is saved.
   */
  readonly handleSignals?: boolean | undefined
  readonly onWarning?: ((message: string) => void) | undefined
}

/** Function that ends one piece of work and saves its run. */
type End = (stopped: Stopped) => Promise<void>

/** All work in progress. A signal ends the process after all runs are saved. */
const underWay = new Set<End>()
let stopping: Stopped | undefined
let stopListening: (() => void) | undefined

/** Runs `work` so that a signal saves its run before the process ends. */
export async function* saveOnSignal<T>(
  setup: Stoppable,
  work: (signal: AbortSignal | undefined) => AsyncGenerator<T, void, undefined>,
): AsyncGenerator<T, void, undefined> {
  const { run, signal, handleSignals = true } = setup
  const onWarning = warner(setup.onWarning)
  if (!run || !handleSignals || !isMainThread) return yield* work(signal)

  if (stopping) return await processEnds()
  const controller = new AbortController()
  setMaxListeners(0, controller.signal) // every episode in flight listens
  const unlink = linkAbort(signal, controller)
  const reports = work(controller.signal)

  let tellEnd = () => {}
  const ended = new Promise<void>((resolve) => {
    tellEnd = resolve
  })
  let resting = false
  const end: End = async (stopped) => {
    onWarning(
      `${stopped.message} The run in ${run.directory} is being saved; a second signal ends the process immediately.`,
    )
    controller.abort(stopped)
    // Between two reports no computation is in progress that could react to the abort.
    await (resting ? reports.return() : ended)
    await run.close()
    onWarning(stateOf(run))
  }
  begin(end)
  try {
    for (;;) {
      const { done, value } = await reports.next()
      if (done) return
      resting = true
      yield value
      resting = false
    }
  } catch (error) {
    // A stop is reported by the exit code alone, any other error by the reports.
    if (stopping && error !== stopping) onWarning(error instanceof Error ? error.message : String(error))
    throw error
  } finally {
    await reports.return() // where the consumer stopped iterating
    tellEnd()
    if (stopping) await processEnds()
    underWay.delete(end)
    if (underWay.size === 0) stopListening?.()
    unlink()
  }
}

/** Promise that never settles: code after the work must not run, or fail, before all runs are saved. */
function processEnds(): Promise<never> {
  return new Promise(() => {})
}

function begin(end: End): void {
  if (underWay.size === 0) {
    // Signals with a listener of the program are left to the program.
    const free = stopNames.filter((name) => process.listenerCount(name) === 0)
    stopListening = onStops(free, stopAll, leave)
  }
  underWay.add(end)
}

function stopAll(stopped: Stopped): boolean {
  if (process.listenerCount(stopped.signal) > 1) {
    // The program has added a listener. Ours is removed, so that the program does not count it as an active one.
    stopListening?.()
    return false
  }
  stopping = stopped
  void Promise.allSettled([...underWay].map((end) => end(stopped)))
    .then(async (ends) => {
      for (const one of ends) if (one.status === "rejected") warn(String(one.reason))
      await setImmediate() // warnings are printed by then
    })
    .then(() => leave(stopped))
  return true
}

function leave({ exitCode }: Stopped): never {
  process.exit(exitCode)
}

function stateOf(run: Run): string {
  const { directory, iteration, saved, checkpoint } = run
  const { unit } = parseCheckpointName(basename(checkpoint?.directory ?? "")) ?? { unit: "iteration" }
  if (saved) return `The state after ${unit} ${iteration} is saved in ${directory}; resume: true continues from it.`
  return `Nothing was saved in ${directory} yet; resume: true restarts the run.`
}
