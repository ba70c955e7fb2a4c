import { setMaxListeners } from "node:events"
import { after } from "../../rollout/time-limit.ts"
import { GigpoError } from "../../util/errors.ts"
import { unlessAborted } from "../../util/linked-abort.ts"
import { onStops, type Stopped, stopNames } from "../../util/stop-signals.ts"

export { Stopped } from "../../util/stop-signals.ts"

/**
 * Ends the process. Where the terminal of a process has gone, Node's own way out fails an assertion, as it cannot reset it: there
 * the signal itself does it, which a shell reports as the same exit code.
 */
export function leave({ signal, exitCode }: Stopped): void {
  const onTerminal = [process.stdin, process.stdout, process.stderr].some((stream) => stream.isTTY)
  if (signal === "SIGHUP" && onTerminal) process.removeAllListeners(signal).kill(process.pid, signal)
  else process.exit(exitCode)
}

/** Milliseconds that a command with nothing to save has to clean up. */
const cleaning = 1200

/**
 * Runs `work` with a signal that the first Ctrl-C, SIGTERM or SIGHUP aborts; a second one ends the process at once, but for SIGHUP:
 * a terminal that goes may send it twice, and service managers after SIGTERM. Rejects with `Stopped` where the signal ended the work.
 *
 * @param options.saves - the work has a state to save, or a folder to clear away: it is waited for. Any other is left where it is
 * if it does not end soon.
 */
export async function interruptible<T>(
  work: (signal: AbortSignal) => Promise<T>,
  { saves = false }: { readonly saves?: boolean } = {},
): Promise<T> {
  const controller = new AbortController()
  const left = new AbortController()
  const { signal } = controller
  // Every episode in flight listens.
  setMaxListeners(0, signal)
  let timer: NodeJS.Timeout | undefined
  const stop = (stopped: Stopped) => {
    controller.abort(stopped)
    if (!saves) timer = after(cleaning, () => left.abort(stopped))
  }
  const stopListening = onStops(stopNames, stop, leave)
  try {
    return await unlessAborted(left.signal, () => work(signal))
  } catch (error) {
    if (GigpoError.is(error) && error.code === "ABORTED") signal.throwIfAborted()
    throw error
  } finally {
    clearTimeout(timer)
    stopListening()
  }
}
