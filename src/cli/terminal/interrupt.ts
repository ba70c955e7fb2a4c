import { setMaxListeners } from "node:events"
import { GigpoError } from "../../errors.ts"

/**
 * Runs `work` with a signal that the first Ctrl-C (or SIGTERM) aborts, so that it can save its state; the second ends the
 * process at once.
 *
 * @param onInterrupt - told at the first.
 */
export async function interruptible<T>(
  work: (signal: AbortSignal) => Promise<T>,
  onInterrupt: () => void = () => {},
): Promise<T> {
  const controller = new AbortController()
  // Every episode in flight listens.
  setMaxListeners(0, controller.signal)
  const stop = () => {
    if (controller.signal.aborted) process.exit(interrupted)
    controller.abort(new GigpoError("ABORTED", "Stopped by Ctrl-C."))
    onInterrupt()
  }
  process.on("SIGINT", stop).on("SIGTERM", stop)
  try {
    return await work(controller.signal)
  } finally {
    process.off("SIGINT", stop).off("SIGTERM", stop)
  }
}

/** Exit code of a command that Ctrl-C ended. */
export const interrupted = 130
