import { setMaxListeners } from "node:events"
import { after } from "../../rollout/time-limit.ts"
import { GigpoError } from "../../util/errors.ts"
import { unlessAborted } from "../../util/linked-abort.ts"
import { onStops, type Stopped, stopNames } from "../../util/stop-signals.ts"

export { Stopped } from "../../util/stop-signals.ts"

/**
 * Ends the process. If the terminal was closed, `process.exit` would fail an assertion when it resets the terminal; the
 * signal itself ends the process instead, with the same exit code for a shell.
 */
export function leave({ signal, exitCode }: Stopped): void {
  const onTerminal = [process.stdin, process.stdout, process.stderr].some((stream) => stream.isTTY)
  if (signal === "SIGHUP" && onTerminal) process.removeAllListeners(signal).kill(process.pid, signal)
  else process.exit(exitCode)
}

/** Milliseconds for the cleanup of a command without state to save. */
const cleaning = 1200

/**
 * Runs `work` with a signal that the first Ctrl-C, SIGTERM or SIGHUP aborts. A second signal ends the process at once,
 * except SIGHUP, which may arrive twice from a closing terminal, or after SIGTERM from a service manager. Rejects with
 * `Stopped` if the signal ended the work.
 *
 * @param options.saves - whether the work saves state or removes a folder, and is awaited. Other work is abandoned if
 * it does not end soon.
 */
export async function interruptible<T>(
  work: (signal: AbortSignal) => Promise<T>,
  { saves = false }: { readonly saves?: boolean } = {},
): Promise<T> {
  const controller = new AbortController()
  const left = new AbortController()
  const { signal } = controller
  // Every episode in progress adds a listener.
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
